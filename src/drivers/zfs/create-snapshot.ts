/** CreateSnapshot: a snapshot of ZFS, or, when the class says `detachedSnapshots`, a full copy that depends on nothing. */

import type { Step } from '../../backends/shell/steps.ts';
import { ownValue } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Snapshot, SnapshotSpec } from '../../core/volume.ts';
import { parameter } from '../common/parameters.ts';
import { isVolumeId } from '../common/volume-id.ts';
import { copyDataset } from './copy-dataset.ts';
import { detachedWorkOf } from './copy-work.ts';
import { readSnapshot, snapshotOf, snapshotProperties } from './snapshot-answer.ts';
import { detachedParent, requireSnapshotName, type SnapshotId, snapshotDataset } from './snapshot-id.ts';
import type { SnapshotNames } from './snapshot-names.ts';
import { requireShortNames, volumeDataset, type ZfsStore } from './store.ts';
import { forSnapshot, userProperties } from './user-properties.ts';
import { asOptions, type Properties } from './wanted-properties.ts';

/** Throws NOT_FOUND for a missing volume, ALREADY_EXISTS when another volume has a snapshot of this name. */
export async function createSnapshot(
  store: ZfsStore,
  names: SnapshotNames,
  call: CallContext,
  spec: SnapshotSpec,
): Promise<Snapshot> {
  const { driver, instanceId } = store;
  const name = requireSnapshotName(spec.name);
  if (!isVolumeId(spec.sourceVolumeId)) throw noVolume(spec);
  const detached = parameter(spec.parameters, 'detachedSnapshots', { driver, instanceId })?.toLowerCase() === 'true';
  const id: SnapshotId = { volumeId: spec.sourceVolumeId, name, detached };
  requireShortNames(snapshotDataset(store, id));
  await names.take(call, id);
  const properties: Properties = {
    ...rendered(store, spec),
    [userProperties.snapshotName]: spec.name,
    [userProperties.snapshotSource]: spec.sourceVolumeId,
    [userProperties.managed]: 'true',
    [userProperties.success]: 'true',
  };
  return detached ? await copied(store, call, id, properties) : await taken(store, call, id, properties);
}

/** With this code it ends when the dataset is there, but was not made as a volume: nothing is done with it then. */
const unmarked = 77;

/** Arguments: the command that prints the mark. */
const isMarked = `mark=$("$@") || return; [ "$mark" = true ] || return ${unmarked}`;

async function taken(store: ZfsStore, call: CallContext, id: SnapshotId, properties: Properties): Promise<Snapshot> {
  const { zfs } = store;
  const dataset = snapshotDataset(store, id);
  const { managed } = userProperties;
  const mark = zfs.zfs('get', '-H', '-o', 'value', '-s', 'local,received', managed, volumeDataset(store, id.volumeId));
  const reading = await zfs.reading(call, { name: dataset, properties: snapshotProperties });
  const [volume, made, state] = await zfs.run(call, 'zfs snapshot', [
    { argv: mark, body: isMarked },
    { argv: zfs.zfs('snapshot', ...asOptions(properties), dataset), goOn: 'any' },
    { argv: reading.argv },
  ]);
  if (volume.code === unmarked || isMissing(volume)) throw noVolume({ sourceVolumeId: id.volumeId });
  if (volume.code !== 0) throw new StepFailed(zfs.host, `zfs get ${managed}`, volume);
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
  // The folder of this volume's snapshots: there is nothing in it to mount.
  const folder: Step = { argv: zfs.zfs('create', '-p', '-o', 'canmount=off', `${parent}/${id.volumeId}`) };
  const [found, tried] = await zfs.run(call, 'zfs create', [{ argv: reading.argv }, folder]);
  if (isMissing(found)) throw noVolume({ sourceVolumeId: id.volumeId });
  const [source] = reading.datasets(found);
  if (!source || ownValue(source, userProperties.managed) !== 'true') throw noVolume({ sourceVolumeId: id.volumeId });
  // Whoever may not mount comes to an end when what is above had to be made first, and to the folder with another attempt.
  const [made] = tried?.code === 0 ? [tried] : await zfs.run(call, 'zfs create', [folder]);
  if (made.code !== 0) throw new StepFailed(zfs.host, `zfs create ${parent}/${id.volumeId}`, made);
  await copyDataset(store, call, {
    snapshot,
    isTemporary: true,
    name: dataset,
    work: detachedWorkOf(parent, id.volumeId, id.name),
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
