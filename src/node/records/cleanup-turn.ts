/**
 * Whose turn it is: a cleanup of what is left over works beside a server that may stage a volume at this very moment. The cleanup puts a file
 * into the folder of records, and then looks at the records; the server writes its record, and then looks for that file. So at least one of
 * them sees the other, and it is the one that waits.
 */
import { link, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { CallError, errnoOf } from '../../core/errors.ts';
import { lifeOf, thisOwner } from '../owner.ts';

const fileName = 'cleanup.lock';

/** Milliseconds after which a turn is over whose process cannot be looked at, because it ran in another container or before a reboot. */
const longestTurnMs = 15 * 60_000;

/** Takes the turn; the function that comes back gives it up. Throws FAILED_PRECONDITION while another cleanup has it. */
export async function takeCleanupTurn(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, fileName);
  const owner = await thisOwner();
  const own = `${path}.${owner}`;
  await writeFile(own, owner, { mode: 0o600 });
  try {
    if ((await linked(own, path)) || (!(await isCleanupUnderWay(folder)) && (await linked(own, path)))) {
      return () => unlink(path).catch(() => {});
    }
  } finally {
    await unlink(own);
  }
  throw new CallError('FAILED_PRECONDITION', 'another `switchboard node cleanup` is at work; try again later');
}

/** A link appears with its content, or not at all because there is one already: then it is false. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Whether a cleanup is at work. What one that was killed left behind is removed. */
export async function isCleanupUnderWay(folder: string): Promise<boolean> {
  const path = join(folder, fileName);
  try {
    const life = await lifeOf(await readFile(path, 'utf8'));
    if (life === 'alive') return true;
    if (life === 'unknown' && Date.now() - (await stat(path)).mtimeMs < longestTurnMs) return true;
    await unlink(path);
    return false;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
