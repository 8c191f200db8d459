/**
 * What is remembered of a snapshot while it is copied, in `<base>/.switchboard/c/<key>.json`.
 *
 * Once a caller was told of a snapshot that is not ready yet, it has to be there after a crash, too, with the same id and the same time, until
 * it is whole or deleted: it is `promised`. A snapshot in a repository is noted before its copy begins, promised or not, because what a copy
 * leaves there that is broken off looks like a whole one. And one that was promised stays noted when it is whole, since its id, which was given
 * out before the repository gave it one, leads to it from here only.
 */
import { posix } from 'node:path';
import * as v from 'valibot';
import { CallError } from '../../core/errors.ts';
import { lifeOf, thisOwner } from '../../node/owner.ts';
import { inBatches } from '../common/in-batches.ts';
import type { Directory } from './directory.ts';
import { idsOfRecords, isId } from './layout.ts';
import { snapshotDrivers } from './options.ts';
import { believedMs, makeLayout, withWork } from './work.ts';

const schema = v.object({
  format: v.literal(1),
  name: v.string(),
  sourceVolumeId: v.string(),
  parameters: v.record(v.string(), v.string()),
  engine: v.picklist(snapshotDrivers),
  createdAt: v.string(),
  /** Bytes; zero: not known. */
  sizeBytes: v.number(),
  promised: v.boolean(),
  /** Who copies (node/owner.ts); empty: nobody. */
  owner: v.string(),
  /** The repository's id of the whole snapshot; undefined while it is copied. */
  inner: v.optional(v.string()),
});

export type SnapshotPromise = v.InferOutput<typeof schema>;

function pathOf({ layout }: Directory, key: string): string {
  if (!isId('s', key)) throw new CallError('INVALID_ARGUMENT', `${JSON.stringify(key)} cannot be a snapshot`);
  return posix.join(layout.promises, `${key}.json`);
}

/** Throws DATA_LOSS for a file that cannot be understood. */
export async function readPromise(directory: Directory, key: string): Promise<SnapshotPromise | undefined> {
  const path = pathOf(directory, key);
  const text = await directory.files.read(path);
  if (text === undefined) return undefined;
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), text);
  if (parsed.success) return parsed.output;
  throw new CallError('DATA_LOSS', `${path} is not a note of this driver: restore it, or remove it to go on without`);
}

/** All of them by key; one that cannot be understood is left out and told in the log. */
export async function listPromises(directory: Directory): Promise<ReadonlyMap<string, SnapshotPromise>> {
  const keys = idsOfRecords('s', await directory.files.list(directory.layout.promises));
  const found = await inBatches(keys, async (key) => ({ key, promise: await soundPromise(directory, key) }));
  return new Map(found.flatMap(({ key, promise }) => (promise ? [[key, promise] as const] : [])));
}

async function soundPromise(directory: Directory, key: string): Promise<SnapshotPromise | undefined> {
  try {
    return await readPromise(directory, key);
  } catch (error) {
    if (!(error instanceof CallError && error.code === 'DATA_LOSS')) throw error;
    directory.log.warn('a snapshot in the making is left out', { error });
    return undefined;
  }
}

/** Writes it and waits until it is on the disk. */
export async function writePromise(directory: Directory, key: string, promise: SnapshotPromise): Promise<void> {
  const { files, layout } = directory;
  await makeLayout(directory);
  await files.ensureFolder(layout.promises, 0o700);
  await withWork(directory, async (work) => {
    await files.writeNew(work.record, `${JSON.stringify(promise)}\n`);
    if (!(await files.move(work.record, pathOf(directory, key)))) {
      throw new CallError('ABORTED', `${layout.promises} disappeared meanwhile; try again`);
    }
    await files.sync(layout.promises);
  });
}

export async function removePromise(directory: Directory, key: string): Promise<void> {
  await directory.files.remove(pathOf(directory, key));
}

/** Shows others that its owner lives. */
export async function touchPromise(directory: Directory, key: string): Promise<void> {
  await directory.files.touch(pathOf(directory, key));
}

/** Whether another process copies it now, as far as that can be told. */
export async function isElsewhere(directory: Directory, key: string, promise: SnapshotPromise): Promise<boolean> {
  const { owner, inner } = promise;
  if (inner !== undefined || owner === '' || owner === (await thisOwner())) return false;
  const life = await lifeOf(owner);
  if (life !== 'unknown') return life === 'alive';
  const touched = await directory.files.touchedAt(pathOf(directory, key));
  return touched !== undefined && Date.now() - touched.getTime() < believedMs;
}
