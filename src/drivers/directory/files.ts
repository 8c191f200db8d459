/**
 * The file system calls that the directory drivers need.
 *
 * They are behind an interface because a base path on a network mount must not be touched by this process itself: such a driver gives an
 * implementation that works in a child. {@link localFiles} is for local file systems.
 */
import { constants } from 'node:fs';
import * as fs from 'node:fs/promises';
import { posix } from 'node:path';
import { CallError, errnoOf } from '../../core/errors.ts';
import { removeTree } from './remove-tree.ts';

export interface Files {
  /** What is there, symbolic links followed; undefined: nothing. */
  kindOf(path: string): Promise<'directory' | 'other' | undefined>;
  /** The path without symbolic links; undefined: nothing is there. */
  realPath(path: string): Promise<string | undefined>;
  /** When a folder was made, as well as the file system knows. */
  bornAt(path: string): Promise<Date>;
  /** Makes the folder and its parents where they are missing. */
  ensureFolder(path: string, mode: number): Promise<void>;
  /** Makes a folder that only root may enter. False: its parent is missing. */
  makeFolder(path: string): Promise<boolean>;
  /** Names in a folder; none when it is missing. */
  list(folder: string): Promise<readonly string[]>;
  /** Undefined: no such file. */
  read(path: string): Promise<string | undefined>;
  /** Writes a new file and waits until it is on the disk. False: there is one already. */
  writeNew(path: string, text: string): Promise<boolean>;
  /** Gives a file another name, unless that is taken: then false, and the file stays. */
  publish(from: string, to: string): Promise<boolean>;
  /** Renames, replacing a file of that name. False: there is nothing to rename, or no folder to rename it into. */
  move(from: string, to: string): Promise<boolean>;
  /** Removes one file, if it is there. */
  remove(path: string): Promise<void>;
  /**
   * Removes a folder with all that is in it, if it is there, without leaving its file system or following a link. `shelter` is a folder that
   * only root can enter, for the folders below meanwhile. Stops when the signal is aborted.
   */
  removeTree(path: string, shelter: string, signal: AbortSignal): Promise<void>;
  /** Waits until a folder's entries are on the disk. On file systems with a journal, so are all changes before. */
  sync(folder: string): Promise<void>;
  touch(path: string): Promise<void>;
  touchedAt(path: string): Promise<Date | undefined>;
  setMode(path: string, mode: number): Promise<void>;
  /** -1 leaves the user or group as it is. */
  setOwner(path: string, user: number, group: number): Promise<void>;
  /** Bytes of the file system there, as its quota shows them; undefined when the path is missing. */
  space(path: string): Promise<{ readonly total: number; readonly available: number } | undefined>;
}

export const localFiles: Files = {
  async kindOf(path) {
    const stats = await orMissing(fs.stat(path));
    return stats && (stats.isDirectory() ? 'directory' : 'other');
  },
  realPath: (path) => orMissing(fs.realpath(path)),
  async bornAt(path) {
    const { birthtimeMs, ctimeMs } = await fs.stat(path);
    return new Date(birthtimeMs > 0 ? birthtimeMs : ctimeMs);
  },
  async ensureFolder(path, mode) {
    await fs.mkdir(path, { recursive: true, mode });
  },
  makeFolder: async (path) => (await orMissing(fs.mkdir(path, 0o700).then(() => true))) ?? false,
  list: async (folder) => (await orMissing(fs.readdir(folder))) ?? [],
  read: (path) => orMissing(fs.readFile(path, 'utf8')),
  async writeNew(path, text) {
    const file = await unlessThere(fs.open(path, 'wx', 0o600));
    if (!file) return false;
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    return true;
  },
  async publish(from, to) {
    const linked = await unlessThere(fs.link(from, to).then(() => true)).catch((error: unknown) => {
      if (linkless.has(errnoOf(error) ?? '')) return 'impossible' as const;
      throw error;
    });
    if (linked === 'impossible') return await publishWithoutLinks(from, to);
    if (linked) await fs.unlink(from);
    return linked ?? false;
  },
  move: async (from, to) =>
    (await orMissing(
      fs.rename(from, to).then(() => true),
      to,
    )) ?? false,
  async remove(path) {
    await orMissing(fs.unlink(path));
  },
  removeTree,
  async sync(folder) {
    const handle = await fs.open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
  async touch(path) {
    const now = new Date();
    await fs.utimes(path, now, now);
  },
  touchedAt: async (path) => (await orMissing(fs.lstat(path)))?.mtime,
  setMode: (path, mode) => fs.chmod(path, mode),
  setOwner: (path, user, group) => fs.chown(path, user, group),
  async space(path) {
    const space = await orMissing(fs.statfs(path));
    return space && { total: space.blocks * space.bsize, available: space.bavail * space.bsize };
  },
};

/** Undefined in place of "no such file", also when a parent is missing or not a folder. */
async function orMissing<T>(work: Promise<T>, target?: string): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
    if (errno === 'EXDEV' && target !== undefined) throw otherFileSystem(target, error);
    throw error;
  }
}

/** What file systems without hard links answer, such as some SMB servers. */
const linkless: ReadonlySet<string> = new Set(['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS']);

/** Nothing there takes a name only if it is free. Two machines that do the same at the same moment could then both believe to be first. */
async function publishWithoutLinks(from: string, to: string): Promise<boolean> {
  if (await orMissing(fs.lstat(to))) return false;
  await fs.rename(from, to);
  return true;
}

function otherFileSystem(target: string, cause: unknown): CallError {
  const folder = posix.dirname(target);
  return new CallError(
    'FAILED_PRECONDITION',
    `${folder} is on another file system, or in another project quota, than the rest of its base path: they must be on one`,
    { cause },
  );
}

async function unlessThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return undefined;
    throw error;
  }
}
