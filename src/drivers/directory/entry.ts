/**
 * A volume or snapshot as two things: its data and its record. They come and go in this order, so that a crash between any two steps
 * leaves a state which tells what was going on:
 *
 *   making    1. data is made within a work folder     a crash leaves only the work folder: swept
 *             2. record is written there, on the disk  likewise
 *             3. record appears in its place           the promise: from here on it exists (state "unfinished")
 *             4. data is renamed to its place          done (state "present"), and told when that is on the disk
 *   removing  1. data is renamed into a work folder    from here on it is gone (state "lost", until removed again)
 *             2. record is removed                     done (state "absent")
 *             3. the data is removed
 */
import { CallError, errnoOf } from '../../core/errors.ts';
import type { Call, Directory } from './directory.ts';
import type { Area } from './layout.ts';
import type { RecordOf } from './record.ts';
import { readRecord, recordText } from './record.ts';
import type { Work } from './work.ts';
import { makeLayout, withWork, workAt } from './work.ts';
import { parseWorkName } from './work-name.ts';

export type Entry<A extends Area> =
  | { readonly state: 'absent' }
  /** The record promises data that is still in a work folder, at this path. */
  | { readonly state: 'unfinished'; readonly record: RecordOf<A>; readonly data: string }
  /** The record's data is gone: somebody removed it by hand, or a removal was interrupted. */
  | { readonly state: 'lost'; readonly record: RecordOf<A> }
  | Present<A>;

export interface Present<A extends Area> {
  readonly state: 'present';
  readonly record: RecordOf<A> | undefined;
  /** What should be a folder may be something else, made by hand. */
  readonly kind: 'directory' | 'other';
}

/** What is there under an id, without changing anything. */
export async function look<A extends Area>(directory: Directory, area: A, id: string): Promise<Entry<A>> {
  const { files, layout } = directory;
  const record = await readRecord(files, layout, area, id);
  const kind = await files.kindOf(layout.data(area, id));
  if (kind) {
    // Without a record it was made by democratic-csi, unless another process has just finished it.
    return { state: 'present', record: record ?? (await readRecord(files, layout, area, id)), kind };
  }
  if (!record) return { state: 'absent' };
  const data = await unfinishedData(directory, area, id, record.work);
  if (data !== undefined) return { state: 'unfinished', record, data };
  // It may have come to its place since.
  const kindNow = await files.kindOf(layout.data(area, id));
  return kindNow ? { state: 'present', record, kind: kindNow } : { state: 'lost', record };
}

/** As {@link look}, after an unfinished entry has been finished. */
export async function settle<A extends Area>(
  directory: Directory,
  area: A,
  id: string,
): Promise<Exclude<Entry<A>, { state: 'unfinished' }>> {
  for (let tries = 0; tries < 3; tries++) {
    const entry = await look(directory, area, id);
    if (entry.state !== 'unfinished') return entry;
    await directory.files.move(entry.data, directory.layout.data(area, id));
  }
  throw new CallError('ABORTED', `${directory.layout.data(area, id)} is being changed by another process; try again`);
}

/** Makes `work.data(area, id)` a volume or snapshot with this record. False: somebody else has made one of this id meanwhile. */
export async function appear<A extends Area>(
  directory: Directory,
  work: Work,
  area: A,
  id: string,
  record: RecordOf<A>,
): Promise<boolean> {
  const { files, layout } = directory;
  await files.writeNew(work.record, recordText(record));
  if (!(await files.publish(work.record, layout.record(area, id)))) return false;
  const from = work.data(area, id);
  const to = layout.data(area, id);
  let moved = await files.move(from, to);
  if (!moved && (await files.kindOf(from))) {
    await makeLayout(directory);
    moved = await files.move(from, to);
  }
  // Another process may have finished it.
  if (!moved && !(await files.kindOf(to))) {
    throw new CallError('ABORTED', `${to} was removed while it was made; try again`);
  }
  await files.sync(layout.dataFolder(area));
  return true;
}

/** Replaces the record of something that is there, or gives it its first. */
export async function rewrite<A extends Area>(
  directory: Directory,
  area: A,
  id: string,
  record: RecordOf<A>,
): Promise<void> {
  const { files, layout } = directory;
  await withWork(directory, async (work) => {
    await files.writeNew(work.record, recordText(record));
    if (!(await files.move(work.record, layout.record(area, id)))) {
      throw new CallError('ABORTED', `${layout.recordFolder(area)} disappeared meanwhile; try again`);
    }
    await files.sync(layout.recordFolder(area));
  });
}

/** Removes what is there under an id, which must be settled. `project`: the project quota that goes with it. */
export async function disappear(
  directory: Directory,
  call: Call,
  area: Area,
  id: string,
  project?: number,
): Promise<void> {
  const { files, layout, quotas } = directory;
  const move = async (work: Work) => {
    await files.move(layout.data(area, id), work.trash);
    await files.remove(layout.record(area, id));
    await files.removeTree(work.trash, work.path, call.signal);
    if (project !== undefined) await quotas.release(call, project);
  };
  try {
    await withWork(directory, move, { project });
  } catch (error) {
    if (!cannotMove(error)) throw error;
    await disappearInPlace(directory, call, area, id, project);
  }
}

/** Where nothing can be moved, because the file system is full or is another one than the work folder's. It is no longer all at once, but the same call again still completes it. */
async function disappearInPlace(
  { files, layout, quotas }: Directory,
  call: Call,
  area: Area,
  id: string,
  project: number | undefined,
): Promise<void> {
  const path = layout.data(area, id);
  // Keeps others out while it is emptied, if even that can still be written.
  await files.setMode(path, 0o700).catch(() => {});
  await files.removeTree(path, path, call.signal);
  await files.remove(layout.record(area, id));
  if (project !== undefined) await quotas.release(call, project);
}

function cannotMove(error: unknown): boolean {
  const errno = errnoOf(error instanceof CallError ? error.cause : error);
  return errno === 'ENOSPC' || errno === 'EDQUOT' || errno === 'EXDEV';
}

/** Forgets a record whose data is gone. */
export async function forget(directory: Directory, area: Area, id: string): Promise<void> {
  await directory.files.remove(directory.layout.record(area, id));
}

async function unfinishedData(
  { files, layout }: Directory,
  area: Area,
  id: string,
  work: string,
): Promise<string | undefined> {
  for (const name of await files.list(layout.tmp)) {
    if (parseWorkName(name)?.work !== work) continue;
    const data = workAt(`${layout.tmp}/${name}`, work).data(area, id);
    if (await files.kindOf(data)) return data;
  }
  return undefined;
}
