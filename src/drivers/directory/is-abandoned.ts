import { posix } from 'node:path';
import { lifeOf, thisOwner } from '../../node/owner.ts';
import type { Directory } from './directory.ts';
import { believedMs, isRunning } from './work.ts';
import { isReleased, parseWorkName } from './work-name.ts';

/** Whether nobody works in the folder of this name in the work folder any more, as far as can be told. */
export async function isAbandoned({ files, layout }: Directory, name: string): Promise<boolean> {
  if (isRunning(name)) return false;
  const owner = parseWorkName(name)?.owner;
  // This process's own works are running, so one that is not was left when its removal failed.
  if (owner !== undefined && (owner === (await thisOwner()) || isReleased(owner))) return true;
  const life = owner === undefined ? 'unknown' : await lifeOf(owner);
  if (life !== 'unknown') return life === 'dead';
  const touched = await files.touchedAt(posix.join(layout.tmp, name));
  return touched !== undefined && Date.now() - touched.getTime() > believedMs;
}
