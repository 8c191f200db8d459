/**
 * Finishing or removing what processes left behind that died in the middle of their work.
 *
 * Work of a living process is never touched. One whose owner cannot be seen from here (another machine, another container) counts as living
 * as long as its folder was touched lately. Before anything is removed its folder is renamed to be this process's own, which stops an owner
 * that lives after all: all its paths are gone.
 */
import { posix } from 'node:path';
import { untilOver } from '../../core/call.ts';
import { thisOwner } from '../../node/owner.ts';
import type { Call, Directory } from './directory.ts';
import { isAbandoned } from './is-abandoned.ts';
import type { Area } from './layout.ts';
import { isId } from './layout.ts';
import { isAwaited } from './partial-copy.ts';
import { readRecord } from './record.ts';
import { isRunning, workAt } from './work.ts';
import type { WorkName } from './work-name.ts';
import { formatWorkName, newWork, parseWorkName } from './work-name.ts';

export interface Sweeper {
  /**
   * Sweeps once. Returns when it is done, or after a moment when there is much to remove; that goes on by itself. False: dead processes have left
   * nothing, not even what somebody may go on with. Never throws but for the signal.
   */
  sweep(call: Call): Promise<boolean>;
  /** Ends what still goes on. */
  close(): Promise<void>;
}

/** How long a call waits for the leftovers of others to be removed, in milliseconds. */
const patienceMs = 10_000;

export function createSweeper(directory: Directory): Sweeper {
  const { log } = directory;
  const stopped = new AbortController();
  let going: Promise<void> | undefined;

  async function removeAll(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await takeOver(directory, { signal: stopped.signal, log }, name).catch((error: unknown) => {
        if (!stopped.signal.aborted) log.warn('a folder of unfinished work could not be removed', { name, error });
      });
    }
  }

  async function sweep(call: Call): Promise<boolean> {
    const { names, isMore } = await leftovers(directory);
    if (names.length === 0) return isMore;
    const before = going;
    going ??= removeAll(names).finally(() => {
      going = undefined;
    });
    await untilOver(call.signal, Promise.race([going, patience()]));
    // What went on already did not know of everything that is there now.
    if (before && !going) await sweep(call);
    return true;
  }

  return {
    sweep,
    async close() {
      stopped.abort();
      await going;
    },
  };
}

function patience(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, patienceMs).unref();
  });
}

/** Names in the work folder whose owners are dead, and whose work nobody is expected to go on with; and whether there are others of dead owners. */
async function leftovers(
  directory: Directory,
): Promise<{ readonly names: readonly string[]; readonly isMore: boolean }> {
  const names: string[] = [];
  let isMore = false;
  for (const name of await directory.files.list(directory.layout.tmp)) {
    if (!(await isAbandoned(directory, name))) continue;
    if (await isAwaited(directory, name)) isMore = true;
    else names.push(name);
  }
  return { names, isMore };
}

async function takeOver(directory: Directory, call: Call, name: string): Promise<void> {
  const { files, layout, quotas } = directory;
  const left = parseWorkName(name) ?? { owner: '', work: newWork() };
  const taken: WorkName = { ...left, owner: await thisOwner() };
  const takenName = formatWorkName(taken);
  if (isRunning(takenName)) return;
  const path = posix.join(layout.tmp, takenName);
  const there = takenName === name ? await files.kindOf(path) : await files.move(posix.join(layout.tmp, name), path);
  if (!there) return;
  await finishPromised(directory, path, taken.work);
  await files.removeTree(path, path, call.signal);
  if (taken.project !== undefined) await quotas.releaseUnused(call, taken.project);
  call.log.info('swept what a dead process left', { work: taken.work });
}

/** Moves data to its place whose record is in its place already. */
async function finishPromised({ files, layout }: Directory, path: string, work: string): Promise<void> {
  for (const name of await files.list(path)) {
    const area: Area | undefined = name.startsWith('v.') ? 'v' : name.startsWith('s.') ? 's' : undefined;
    const id = name.slice(2);
    if (!area || !isId(area, id)) continue;
    const record = await readRecord(files, layout, area, id);
    if (record?.work !== work || (await files.kindOf(layout.data(area, id)))) continue;
    await files.move(workAt(path, work).data(area, id), layout.data(area, id));
    await files.sync(layout.dataFolder(area));
  }
}
