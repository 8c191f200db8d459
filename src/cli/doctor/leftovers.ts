/** What processes left in the folders of local connections when they died in the middle of their work. */
import { join } from 'node:path/posix';
import { layoutOf } from '../../drivers/directory/layout.ts';
import { parseWorkName } from '../../drivers/directory/work-name.ts';
import { lifeOf } from '../../node/owner.ts';
import { whyOf } from './bounded.ts';
import type { ConfiguredConnection } from './configured.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('mounts');

const dayMs = 86_400_000;

export async function checkLeftovers(
  inspection: Pick<Inspection, 'configured' | 'files' | 'now'>,
): Promise<readonly Finding[]> {
  const found = inspection.configured.connections.map((connection) => ofConnection(inspection, connection));
  return (await Promise.all(found)).flat();
}

async function ofConnection(
  { files, now }: Pick<Inspection, 'files' | 'now'>,
  { name, basePath }: ConfiguredConnection,
): Promise<readonly Finding[]> {
  if (basePath === undefined) return [];
  const label = `work of ${name}`;
  const { tmp } = layoutOf(basePath);
  try {
    const works = (await files.list(tmp)) ?? [];
    const left: number[] = [];
    for (const work of works) {
      const owner = parseWorkName(work)?.owner;
      if (owner !== undefined && (await lifeOf(owner)) === 'alive') continue;
      left.push((await files.look(join(tmp, work)))?.modified ?? now());
    }
    if (left.length === 0) return [];
    const oldest = Math.max(0, now() - Math.min(...left));
    const detail = `${left.length} unfinished in ${tmp}, the oldest for ${Math.floor(oldest / 3_600_000)} h`;
    const advice = 'the connection’s next call removes them; they hold space until then';
    return [finding(oldest > dayMs ? 'warning' : 'note', label, detail, advice)];
  } catch (error) {
    return [finding('note', label, whyOf(error))];
  }
}
