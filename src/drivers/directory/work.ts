/**
 * Folders in which something is made before it appears, or removed after it has disappeared.
 *
 * They are in one file system with the data, so that a rename moves a finished thing to its place at once. The name tells the owner; what a
 * dead owner has left is finished or removed by the next call (sweep.ts).
 */
import { posix } from 'node:path';
import { asCallError } from '../../core/errors.ts';
import { thisOwner } from '../../node/owner.ts';
import type { Directory } from './directory.ts';
import type { Area } from './layout.ts';
import { formatWorkName, newWork, parseWorkName } from './work-name.ts';

export interface Work {
  /** Distinguishes it from all others. */
  readonly id: string;
  readonly path: string;
  /** Where the data of a volume or snapshot is made. */
  data(area: Area, id: string): string;
  /** Where a record is written. */
  readonly record: string;
  /** Where something goes to be removed. */
  readonly trash: string;
}

/** How often the owner of a long work shows that he lives to those who cannot see his process, and how long they believe it. In milliseconds. */
export const heartbeatMs = 30_000;
export const believedMs = 20 * heartbeatMs;

/** How long a failed call may take to remove what it had made. What is left then is removed by the next call. */
const cleanUpMs = 30_000;

/** Works of this process, whichever driver instance does them. */
const running = new Set<string>();

/** Whether this process works in the folder of this name now. */
export function isRunning(name: string): boolean {
  return running.has(name);
}

export interface WorkOptions {
  /** The quota number that goes with it. */
  readonly project?: number | undefined;
  /** The name of a folder that this process has taken over from another work, to work in it on. */
  readonly folder?: string | undefined;
  /** Asked in the end: true leaves the folder and what is in it to others. */
  readonly leave?: (() => boolean) | undefined;
  /** Told of a folder that is left. */
  readonly onLeft?: ((name: string) => Promise<void>) | undefined;
}

/** Gives `body` a folder to work in and removes the folder, with what is still in it, afterwards. */
export async function withWork<T>(
  directory: Directory,
  body: (work: Work) => Promise<T>,
  { project, folder, leave, onLeft }: WorkOptions = {},
): Promise<T> {
  const id = (folder === undefined ? undefined : parseWorkName(folder)?.work) ?? newWork();
  const name = folder ?? formatWorkName({ owner: await thisOwner(), work: id, project });
  const path = posix.join(directory.layout.tmp, name);
  running.add(name);
  try {
    if (folder === undefined) await makeFolder(directory, path);
    return await keptAlive(directory, path, () => body(workAt(path, id)));
  } finally {
    if (leave?.()) await onLeft?.(name);
    else await removeLeft(directory, path);
    running.delete(name);
  }
}

async function makeFolder(directory: Directory, path: string): Promise<void> {
  if (await directory.files.makeFolder(path)) return;
  await makeLayout(directory);
  await directory.files.makeFolder(path);
}

/** A folder of work, by its path and the id of the work. */
export function workAt(path: string, id: string): Work {
  return {
    id,
    path,
    data: (area, dataId) => posix.join(path, `${area}.${dataId}`),
    record: posix.join(path, 'record.json'),
    trash: posix.join(path, 'trash'),
  };
}

/** Makes those of the base path's folders that are missing. Only root may look into ours: volumes in the making have their final permissions. */
export async function makeLayout({ files, layout }: Directory): Promise<void> {
  for (const folder of layout.folders) {
    await files.ensureFolder(folder, folder.startsWith(posix.join(layout.base, '.')) ? 0o700 : 0o755);
  }
}

async function keptAlive<T>({ files }: Directory, path: string, body: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => files.touch(path).catch(() => {}), heartbeatMs);
  timer.unref();
  try {
    return await body();
  } finally {
    clearInterval(timer);
  }
}

async function removeLeft({ files, log }: Directory, path: string): Promise<void> {
  try {
    await files.removeTree(path, path, AbortSignal.timeout(cleanUpMs));
  } catch (error) {
    // Of a share that is out of reach it is told once, not for each call that was under way.
    const level = asCallError(error).code === 'UNAVAILABLE' ? 'verbose' : 'warn';
    log[level]('a folder of unfinished work could not be removed now; the next call will try again', { path, error });
  }
}
