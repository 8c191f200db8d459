/** Connections whose shares cannot be told apart on this machine: a volume of one would be made or removed in the other. */
import type { Problem } from '../config/problem.ts';
import type { SharePlace } from '../drivers/type.ts';

export interface PlacedConnection extends SharePlace {
  readonly name: string;
  readonly file: string;
}

/** A problem for each connection that works on its share where another connection works on another share. */
export function placeConflicts(connections: readonly PlacedConnection[]): readonly Problem[] {
  const sorted = connections.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return sorted.flatMap((one): Problem[] => {
    const others = sorted.filter((other) => other.base === one.base && other.share !== one.share);
    const wrong = others.find((other) => isMistake(one, other)) ?? others[0];
    if (!wrong) return [];
    const said = `connection "${wrong.name}" works on ${wrong.share} at ${one.base}, too, and this one on ${one.share}`;
    const place = { file: one.file, line: 0, column: 0, path: '' };
    return isMistake(one, wrong)
      ? [{ ...place, severity: 'error', message: `${said}: give each a controllerBasePath of its own` }]
      : [{ ...place, severity: 'warning', message: `${said}: unless these are names of one folder, volumes are lost` }];
  });
}

/** What is mounted for one cannot be the other's; otherwise they may be names of one folder. */
function isMistake(one: PlacedConnection, other: PlacedConnection): boolean {
  if (one.mount === 'auto' || other.mount === 'auto') return true;
  if (one.mount === 'local' || other.mount === 'local') return false;
  return one.path !== other.path && !one.isRenamed && !other.isRenamed;
}
