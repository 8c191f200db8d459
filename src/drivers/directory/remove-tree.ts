/**
 * Removing a folder with everything in it, whatever a tenant has put there: millions of files, chains of folders longer than a path may be,
 * links, and processes that still change it.
 *
 * Every folder found is first moved to a shelter, which only root can enter, and looked at again there. So paths stay short,
 * a folder that is swapped for a symbolic link meanwhile is never followed, and a mount point is never entered, since it cannot be moved.
 */
import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import * as fs from 'node:fs/promises';
import { posix } from 'node:path';
import { throwIfOver } from '../../core/call.ts';
import { CallError, errnoOf } from '../../core/errors.ts';

/** Entries removed at a time. */
const batchSize = 64;

/**
 * Removes `path` and what is in it, if it is there. Stops between two batches when the signal is aborted. `onProgress` is called whenever
 * something is gone.
 */
export async function removeTree(
  path: string,
  shelter: string,
  signal: AbortSignal,
  onProgress: () => void = () => {},
): Promise<void> {
  const fresh = newNames(shelter);
  const pending = [path];
  let fruitless = 0;
  for (let folder = pending.at(-1); folder !== undefined; folder = pending.at(-1)) {
    throwIfOver(signal);
    if (await removeEmpty(folder)) {
      pending.pop();
      onProgress();
      continue;
    }
    const at = folder;
    let changed = false;
    const progress = () => {
      changed = true;
      onProgress();
    };
    const entries = await firstEntries(folder);
    const found = await Promise.all(entries.map((entry) => removeEntry(shelter, at, entry, fresh, progress)));
    pending.push(...found.filter((path) => path !== undefined));
    // A server may go on showing what is removed as long as somebody has it open.
    fruitless = changed ? 0 : fruitless + 1;
    if (fruitless > 3) throw new CallError('ABORTED', `${folder} cannot be emptied: somebody uses or changes it`);
  }
}

function newNames(shelter: string): () => string {
  // Most of what is removed has no folder in it.
  let run: string | undefined;
  let count = 0;
  return () => {
    run ??= randomBytes(4).toString('hex');
    return posix.join(shelter, `${run}-${count++}`);
  };
}

/** True when the folder is gone. */
async function removeEmpty(folder: string): Promise<boolean> {
  try {
    await fs.rmdir(folder);
    return true;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOTEMPTY' || errno === 'EEXIST') return false;
    if (errno === 'ENOENT') return true;
    if (errno === 'ENOTDIR') {
      await fs.unlink(folder);
      return true;
    }
    throw explained(error, folder);
  }
}

async function firstEntries(folder: string): Promise<readonly Dirent[]> {
  const entries: Dirent[] = [];
  try {
    for await (const entry of await fs.opendir(folder, { bufferSize: batchSize })) {
      entries.push(entry);
      if (entries.length === batchSize) break;
    }
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw explained(error, folder);
  }
  return entries;
}

/** Removes what is not a folder. A folder is made ready to be emptied and its present path returned. */
async function removeEntry(
  shelter: string,
  folder: string,
  entry: Dirent,
  fresh: () => string,
  progress: () => void,
): Promise<string | undefined> {
  const path = posix.join(folder, entry.name);
  // Unlink is for files only: in some runtimes it would try to remove a folder, too.
  if (!entry.isDirectory() && (await removeFile(path, progress))) return undefined;
  const place = folder === shelter ? path : await moveUp(path, fresh());
  if (place === undefined || !(await isFolder(place))) return undefined;
  progress();
  return place;
}

/** False: it has become a folder meanwhile. */
async function removeFile(path: string, progress: () => void): Promise<boolean> {
  try {
    await fs.unlink(path);
    progress();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return true;
    if (await isFolder(path)) return false;
    throw explained(error, path);
  }
  return true;
}

/**
 * Moves a folder next to the others. One that belongs to a nested btrfs subvolume cannot leave it, and nothing moves where not a block is
 * left: such a folder is emptied where it is.
 */
async function moveUp(path: string, place: string): Promise<string | undefined> {
  try {
    await fs.rename(path, place);
    return place;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return undefined;
    if (errno === 'EXDEV' || errno === 'ENOSPC' || errno === 'EDQUOT') return path;
    throw explained(error, path);
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await fs.lstat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

function explained(error: unknown, path: string): unknown {
  switch (errnoOf(error)) {
    case 'EBUSY':
      return new CallError(
        'FAILED_PRECONDITION',
        `${path} cannot be removed: something is mounted there, or a process has it open`,
        {
          cause: error,
        },
      );
    case 'EPERM':
      return new CallError(
        'FAILED_PRECONDITION',
        `${path} cannot be removed: it may be marked immutable (lsattr shows it)`,
        {
          cause: error,
        },
      );
    default:
      return error;
  }
}
