/** CreateSnapshot: a snapshot of ZFS, or, when the class says `detachedSnapshots`, a full copy that depends on nothing. */

import type { Step } from '../../backends/shell/steps.ts';
import { ownValue } from '../../backends/zfs/dataset.ts';
import { failureKind, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Snapshot, SnapshotSpec } from '../../core/volume.ts';
import { parameter } from '../common/parameters.ts';
import { isVolumeId } from '../common/volume-id.ts';
import { copyDataset } from './copy-dataset.ts';
import { detachedWorkName } from './leftovers.ts';
import { readSnapshot, snapshotOf, snapshotProperties } from './snapshot-answer.ts';
import { detachedParent, requireSnapshotName, type SnapshotId, snapshotDataset } from './snapshot-id.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { forSnapshot, userProperties } from './user-properties.ts';
import { asOptions, type Properties } from './wanted-properties.ts';

/** Throws NOT_FOUND for a missing volume, ALREADY_EXISTS when another volume has a snapshot of this name. */
export async function createSnapshot(store: ZfsStore, call: CallContext, spec: SnapshotSpec): Promise<Snapshot> {
  const { driver, instanceId } = store;
  const name = requireSnapshotName(spec.name);
  if (!isVolumeId(spec.sourceVolumeId)) throw noVolume(spec);
  const detached = parameter(spec.parameters, 'detachedSnapshots', { driver, instanceId })?.toLowerCase() === 'true';
  const id: SnapshotId = { volumeId: spec.sourceVolumeId, name, detached };
  await requireFreeName(store, call, id);
  const properties: Properties = {
    ...rendered(store, spec),
    [userProperties.snapshotName]: spec.name,
    [userProperties.snapshotSource]: spec.sourceVolumeId,
    [userProperties.managed]: 'true',
    [userProperties.success]: 'true',
  };
  return detached ? await copied(store, call, id, properties) : await taken(store, call, id, properties);
}

/** One round trip: what there is of this name anywhere. ZFS knows names below one dataset only. */
async function requireFreeName(store: ZfsStore, call: CallContext, { volumeId, name }: SnapshotId): Promise<void> {
  const { zfs, options } = store;
  const { datasetParentName: volumes, detachedSnapshotsDatasetParentName: detached } = options;
  const list = (types: string, root: string): Step => ({
    argv: zfs.zfs('list', '-H', '-o', 'name', '-r', '-t', types, root),
    goOn: 'any',
  });
  const [attachedNames, detachedNames] = await zfs.run(call, 'zfs list', [
    list('snapshot', volumes),
    ...(detached ? [list(store.kind, detached)] : []),
  ]);
  if (attachedNames.code !== 0 && failureKind(attachedNames) !== 'missing') {
    throw new StepFailed(zfs.host, `zfs list ${volumes}`, attachedNames);
  }
  const other =
    attachedNames.stdout
      .split('\n')
      .find((one) => one.endsWith(`@${name}`) && one !== `${volumes}/${volumeId}@${name}`) ??
    detachedNames?.stdout
      .split('\n')
      .find((one) => one.endsWith(`/${name}`) && one !== `${detached}/${volumeId}/${name}`);
  if (other) throw new CallError('ALREADY_EXISTS', `a snapshot ${name} exists already, of another volume: ${other}`);
}

async function taken(store: ZfsStore, call: CallContext, id: SnapshotId, properties: Properties): Promise<Snapshot> {
  const { zfs } = store;
  const dataset = snapshotDataset(store, id);
  const source = await zfs.reading(call, {
    name: volumeDataset(store, id.volumeId),
    properties: [userProperties.managed],
  });
  const reading = await zfs.reading(call, { name: dataset, properties: snapshotProperties });
  const [volume, made, state] = await zfs.run(call, 'zfs snapshot', [
    { argv: source.argv },
    { argv: zfs.zfs('snapshot', ...asOptions(properties), dataset), goOn: 'any' },
    { argv: reading.argv },
  ]);
  if (volume.code !== 0 && failureKind(volume) === 'missing') throw noVolume({ sourceVolumeId: id.volumeId });
  source.datasets(volume);
  if (state?.code !== 0) throw new StepFailed(zfs.host, `zfs snapshot ${dataset}`, made ?? volume);
  const found = reading.datasets(state).find((one) => one.name === dataset);
  const snapshot = found && snapshotOf(store, found);
  if (snapshot) return snapshot;
  throw new CallError('ALREADY_EXISTS', `${dataset} on ${zfs.host} exists already, but was not made through CSI`);
}

async function copied(store: ZfsStore, call: CallContext, id: SnapshotId, properties: Properties): Promise<Snapshot> {
  const { zfs } = store;
  const parent = detachedParent(store);
  const volume = volumeDataset(store, id.volumeId);
  const dataset = snapshotDataset(store, id);
  const existing = await readSnapshot(store, call, id);
  const snapshot = `${volume}@${forSnapshot(id.name)}`;
  if (existing) {
    // Left when an earlier call was interrupted after everything else.
    await zfs.run(call, 'zfs destroy', [{ argv: zfs.zfs('destroy', '-d', snapshot), goOn: 'any' }]);
    return existing;
  }
  const reading = await zfs.reading(call, { name: volume, properties: [userProperties.managed] });
  const [found, made] = await zfs.run(call, 'zfs create', [
    { argv: reading.argv },
    // The folder of this volume's snapshots: there is nothing in it to mount.
    { argv: zfs.zfs('create', '-p', '-o', 'canmount=off', `${parent}/${id.volumeId}`) },
  ]);
  if (found.code !== 0 && failureKind(found) === 'missing') throw noVolume({ sourceVolumeId: id.volumeId });
  const [source] = reading.datasets(found);
  if (!source || ownValue(source, userProperties.managed) !== 'true') throw noVolume({ sourceVolumeId: id.volumeId });
  if (made?.code !== 0) throw new StepFailed(zfs.host, `zfs create ${parent}/${id.volumeId}`, made ?? found);
  await copyDataset(store, call, {
    take: [{ argv: zfs.zfs('snapshot', snapshot), goOn: 'any' }],
    snapshot,
    isTemporary: true,
    name: dataset,
    workName: detachedWorkName(parent, id),
    properties: { ...properties, ...(store.kind === 'filesystem' && { canmount: 'noauto' }) },
  });
  const whole = await readSnapshot(store, call, id);
  if (!whole) throw new CallError('INTERNAL', `${dataset} is not there after it was copied`);
  return whole;
}

function rendered({ options, render }: ZfsStore, spec: SnapshotSpec): Properties {
  const templates = Object.entries(options.snapshotProperties ?? {});
  return Object.fromEntries(
    templates.map(([key, template]) => [key, render(template, { name: spec.name, parameters: spec.parameters })]),
  );
}

function noVolume({ sourceVolumeId }: Pick<SnapshotSpec, 'sourceVolumeId'>): CallError {
  return new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(sourceVolumeId)}`);
}
