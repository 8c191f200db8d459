/** `filecopy`: a snapshot is a whole copy in a folder beside the volumes, which shares its blocks with the volume where the file system can. */
import type { CallContext } from '../../../core/call.ts';
import { throwIfOver } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import type { Snapshot, SnapshotSpec } from '../../../core/volume.ts';
import { sameParameters } from '../../common/parameters.ts';
import { looksShortened } from '../../common/shorten-id.ts';
import type { CopyProgress } from '../copy-progress.ts';
import { copyTree } from '../copy-tree.ts';
import { withCopyWork } from '../copy-work.ts';
import type { Call, Directory } from '../directory.ts';
import type { Present } from '../entry.ts';
import { appear, disappear, forget, look, settle } from '../entry.ts';
import { identityOf } from '../identity.ts';
import { dropPartials } from '../partial-copy.ts';
import type { SnapshotRecord } from '../record.ts';
import { snapshotOf } from '../snapshot-answer.ts';
import { formatSnapshotId, snapshotFolder } from '../snapshot-id.ts';
import { originOf, otherOfName, snapshotFolders } from '../snapshot-search.ts';
import type { Source } from '../source.ts';
import { usedBytes } from '../used-bytes.ts';
import type { Listed, SnapshotEngine, SnapshotTask } from './engine.ts';
import { nameTaken, otherParameters } from './name-taken.ts';
import { requireVolume } from './require-volume.ts';

export function createFilecopy(directory: Directory): SnapshotEngine {
  const { maxIdBytes } = directory;
  return {
    name: 'filecopy',
    // It is made elsewhere and moved to its place when it is whole.
    leavesHalf: false,
    keyOf: (volumeId, name) => snapshotFolder(volumeId, name, maxIdBytes),
    idOf: (folder) => formatSnapshotId(folder, maxIdBytes),
    find: (_call, spec, folder) => find(directory, spec, folder),
    take: (call, task, progress) => take(directory, call, task, progress),
    get: (_call, folder) => snapshotIn(directory, folder),
    list: (_call, volumeId) => list(directory, volumeId),
    source: (_call, folder) => sourceIn(directory, folder),
    delete: (call, folder) => remove(directory, call, folder),
    discard: (call, { key }) => dropPartials(directory, call, 's', key),
    close: async () => {},
  };
}

async function find(directory: Directory, spec: SnapshotSpec, folder: string): Promise<Snapshot | undefined> {
  const entry = await settle(directory, 's', folder);
  if (entry.state === 'present') return await existing(directory, spec, folder, entry);
  const other = await otherOfName(directory, spec.name, folder);
  if (other) throw nameTaken(spec, other.volumeId);
  return undefined;
}

async function existing(
  directory: Directory,
  spec: SnapshotSpec,
  folder: string,
  entry: Present<'s'>,
): Promise<Snapshot> {
  const { record } = entry;
  const origin = await originOf(directory, folder, record);
  const same = origin.volumeId === spec.sourceVolumeId && origin.name === spec.name;
  if (!same && !origin.guessed) throw nameTaken(spec, origin.volumeId, origin.name);
  if (record?.parameters && !sameParameters(record.parameters, spec.parameters)) throw otherParameters(spec.name);
  return { ...(await snapshotOf(directory, folder, record)), sourceVolumeId: spec.sourceVolumeId };
}

/** The order of its steps is in entry.ts. */
async function take(directory: Directory, call: Call, task: SnapshotTask, progress: CopyProgress): Promise<Snapshot> {
  const { layout } = directory;
  const { spec, key: folder } = task;
  const volume = await requireVolume(directory, spec.sourceVolumeId);
  const from = await identityOf(directory, 'v', spec.sourceVolumeId, volume);
  const before = await settle(directory, 's', folder);
  if (before.state === 'present') return await existing(directory, spec, folder, before);
  if (before.state === 'lost') await forget(directory, 's', folder);
  const made = await withCopyWork(directory, call, { area: 's', id: folder, from }, async (work, broken) => {
    const path = work.data('s', folder);
    await copyTree(directory, call, layout.data('v', spec.sourceVolumeId), path, progress, broken);
    const sizeBytes = task.sizeBytes || (await usedBytes(directory, call, path));
    throwIfOver(call.signal);
    const record: SnapshotRecord = {
      format: 1,
      work: work.id,
      name: spec.name,
      createdAt: task.createdAt.toISOString(),
      parameters: { ...spec.parameters },
      sizeBytes,
      sourceVolumeId: spec.sourceVolumeId,
    };
    return (await appear(directory, work, 's', folder, record)) ? record : undefined;
  });
  if (made) return await snapshotOf(directory, folder, made);
  // Another process has taken one of this id meanwhile.
  const winner = await settle(directory, 's', folder);
  if (winner.state === 'present') return await existing(directory, spec, folder, winner);
  throw new CallError('ABORTED', `snapshot ${folder} is changed by another process; try again`);
}

async function sourceIn(directory: Directory, folder: string): Promise<Source | undefined> {
  const entry = await look(directory, 's', folder);
  if (entry.state !== 'present' || entry.kind !== 'directory') return undefined;
  const path = directory.layout.data('s', folder);
  return {
    sizeBytes: entry.record?.sizeBytes ?? 0,
    title: `snapshot ${folder}`,
    engine: 'filecopy',
    identity: await identityOf(directory, 's', folder, entry.record),
    fill: (call, { target, broken }, progress) => copyTree(directory, call, path, target, progress, broken),
  };
}

async function remove(directory: Directory, call: CallContext, folder: string): Promise<void> {
  const entry = await settle(directory, 's', folder);
  await dropPartials(directory, call, 's', folder);
  if (entry.state === 'absent') return;
  const mountPoints = (await directory.mountPointsOf?.(directory.layout.data('s', folder))) ?? [];
  if (mountPoints.length > 0) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `snapshot ${folder} is in use: it is mounted at ${mountPoints.join(' and at ')}`,
    );
  }
  await call.waitingFor(`removal of snapshot ${folder}`, () => disappear(directory, call, 's', folder));
}

/** By their names alone: whoever asks for a page reads only the records on it. */
async function list(directory: Directory, volumeId: string | undefined): Promise<readonly Listed[]> {
  const folders = await snapshotFolders(directory);
  return folders
    .filter((folder) => volumeId === undefined || folder.startsWith(`${volumeId}-`) || looksShortened(folder))
    .map((folder) => ({ key: folder, inner: folder, load: () => soundSnapshotIn(directory, folder) }));
}

/** One record that cannot be read must not hide all snapshots. */
async function soundSnapshotIn(directory: Directory, folder: string): Promise<Snapshot | undefined> {
  try {
    return await snapshotIn(directory, folder);
  } catch (error) {
    if (!(error instanceof CallError && error.code === 'DATA_LOSS')) throw error;
    directory.log.warn('a snapshot is left out of the list', { error });
    return undefined;
  }
}

async function snapshotIn(directory: Directory, folder: string): Promise<Snapshot | undefined> {
  const entry = await look(directory, 's', folder);
  return entry.state === 'present' && entry.kind === 'directory'
    ? await snapshotOf(directory, folder, entry.record)
    : undefined;
}
