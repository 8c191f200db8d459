/** CreateSnapshot. The order of its steps is in entry.ts. */
import type { CallContext } from '../../core/call.ts';
import { throwIfOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Snapshot, SnapshotSpec } from '../../core/volume.ts';
import { sameParameters } from '../common/parameters.ts';
import { copyTree } from './copy-tree.ts';
import type { Directory } from './directory.ts';
import type { Present } from './entry.ts';
import { appear, forget, look, settle } from './entry.ts';
import { isId } from './layout.ts';
import { snapshotDrivers } from './options.ts';
import type { SnapshotRecord, VolumeRecord } from './record.ts';
import { snapshotOf } from './snapshot-answer.ts';
import { requireSnapshotName, snapshotFolder } from './snapshot-id.ts';
import { originOf, otherOfName } from './snapshot-search.ts';
import { usedBytes } from './used-bytes.ts';
import { withWork } from './work.ts';

/** Takes a snapshot, or answers with the one that an equal request took before. */
export async function createSnapshot(directory: Directory, call: CallContext, spec: SnapshotSpec): Promise<Snapshot> {
  requireSnapshotName(spec.name);
  requireFileCopy(directory, spec);
  const volumeId = spec.sourceVolumeId;
  if (!isId('v', volumeId)) throw noVolume(volumeId);
  const folder = snapshotFolder(volumeId, spec.name, directory.maxIdBytes);

  const entry = await settle(directory, 's', folder);
  if (entry.state === 'present') return await existing(directory, spec, folder, entry);
  const other = await otherOfName(directory, spec.name, folder);
  if (other) throw taken(spec, other.volumeId);
  const volume = await look(directory, 'v', volumeId);
  if (volume.state !== 'present' || volume.kind !== 'directory') throw noVolume(volumeId);
  if (entry.state === 'lost') await forget(directory, 's', folder);
  const record = await take(directory, call, spec, folder, volume.record);
  if (record) return await snapshotOf(directory, folder, record);
  // Another process has taken one of this id meanwhile.
  const winner = await settle(directory, 's', folder);
  if (winner.state !== 'present')
    throw new CallError('ABORTED', `snapshot ${folder} is changed by another process; try again`);
  return await existing(directory, spec, folder, winner);
}

/** Undefined: somebody else was faster. */
async function take(
  directory: Directory,
  call: CallContext,
  spec: SnapshotSpec,
  folder: string,
  volume: VolumeRecord | undefined,
): Promise<SnapshotRecord | undefined> {
  const { files, layout } = directory;
  const volumeId = spec.sourceVolumeId;
  return await withWork(directory, async (work) => {
    const createdAt = new Date().toISOString();
    const path = work.data('s', folder);
    await files.makeFolder(path);
    await call.waitingFor(`copy of volume ${volumeId}`, () =>
      copyTree(directory, call, layout.data('v', volumeId), path),
    );
    const sizeBytes = volume?.sizeBytes ?? (await usedBytes(directory, call, path));
    throwIfOver(call.signal);
    const { name, parameters } = spec;
    const record: SnapshotRecord = {
      format: 1,
      work: work.id,
      name,
      createdAt,
      parameters: { ...parameters },
      sizeBytes,
      sourceVolumeId: volumeId,
    };
    return (await appear(directory, work, 's', folder, record)) ? record : undefined;
  });
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
  if (!same && !origin.guessed) throw taken(spec, origin.volumeId, origin.name);
  if (record?.parameters && !sameParameters(record.parameters, spec.parameters)) {
    throw new CallError('ALREADY_EXISTS', `snapshot ${spec.name} exists already, with other parameters`);
  }
  return { ...(await snapshotOf(directory, folder, record)), sourceVolumeId: spec.sourceVolumeId };
}

function requireFileCopy({ options }: Directory, spec: SnapshotSpec): void {
  const driver = spec.parameters.driver || options.snapshots?.default_driver || 'filecopy';
  if (driver === 'filecopy') return;
  if (snapshotDrivers.some((known) => known === driver)) {
    throw new CallError('UNIMPLEMENTED', `snapshots by ${driver} are not available in this version: use filecopy`);
  }
  throw new CallError(
    'INVALID_ARGUMENT',
    `${JSON.stringify(driver)} is not a snapshot driver: ${snapshotDrivers.join(', ')} are`,
  );
}

function taken(spec: SnapshotSpec, volumeId: string, name = spec.name): CallError {
  const what = name === spec.name ? 'a snapshot of this name' : `its folder, by snapshot ${name},`;
  return new CallError(
    'ALREADY_EXISTS',
    `snapshot ${spec.name} of ${spec.sourceVolumeId}: ${what} exists of volume ${volumeId}`,
  );
}

function noVolume(id: string): CallError {
  return new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(id)} to take a snapshot of`);
}
