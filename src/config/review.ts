/** What validation lets pass and the author should know: misspelled keys, keys without effect, and lists where maps belong. */
import type { GenericSchema } from 'valibot';
import { whyIgnored } from './ignored.ts';
import { nearestName } from './nearest-name.ts';
import type { Path } from './path.ts';
import { atPath, formatPath } from './path.ts';
import { childrenOf, isMap, keysOf, onlyMaps, viewsOf } from './schema.ts';

export interface Finding {
  readonly severity: 'error' | 'warning';
  readonly path: Path;
  readonly message: string;
}

/** Walks the schema beside a value as it was before validation. */
export function review(schema: GenericSchema, value: unknown): readonly Finding[] {
  const findings: Finding[] = [];
  const warn = (path: Path, message: string) => findings.push({ severity: 'warning', path, message });

  const walk = (schemas: readonly GenericSchema[], item: unknown, path: Path): void => {
    if (item === null || item === undefined) return;
    const views = schemas.flatMap((one) => viewsOf(one, item));
    const why = whyIgnored(views);
    if (why !== undefined) warn(path, `${formatPath(path)} has no effect: ${why}`);
    if (Array.isArray(item)) {
      // To valibot a list is a map too.
      if (onlyMaps(views))
        findings.push({ severity: 'error', path, message: `expected map${atPath(path)}, found a list` });
      item.forEach((one, index) => {
        walk(childrenOf(views, index), one, [...path, index]);
      });
    } else if (isMap(item)) walkMap(views, item, path);
  };

  const walkMap = (views: readonly GenericSchema[], map: Readonly<Record<string, unknown>>, path: Path): void => {
    const known = keysOf(views);
    for (const [key, one] of Object.entries(map)) {
      if (known === undefined || known.includes(key)) walk(childrenOf(views, key), one, [...path, key]);
      else warn([...path, key], unknownKey(key, known, path));
    }
  };

  walk([schema], value, []);
  return findings;
}

function unknownKey(key: string, known: readonly string[], path: Path): string {
  const nearest = nearestName(key, known);
  const few = known.length > 0 && known.length <= 8 ? `; known are ${known.join(', ')}` : '';
  const advice = nearest === undefined ? few : `; did you mean ${nearest}?`;
  return `unknown key ${formatPath([key])}${atPath(path, 'in')}, ignored${advice}`;
}
