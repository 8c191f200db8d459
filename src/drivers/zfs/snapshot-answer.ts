/** Datasets and their snapshots as the snapshots that they are. */
import { type Dataset, numberOf, ownValue, valueIn } from '../../backends/zfs/dataset.ts';
import type { CallContext } from '../../core/call.ts';
import type { Snapshot } from '../../core/volume.ts';
import { readSnapshotId, type SnapshotId, snapshotDataset, textOf } from './snapshot-id.ts';
import type { ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';

/** What is read of snapshots and of datasets that are snapshots. */
export const snapshotProperties = [
  'creation',
  'defer_destroy',
  'volsize',
  'referenced',
  'logicalreferenced',
  ...Object.values(userProperties),
] as const;

/** A dataset as the snapshot that it is; undefined when it is not one of ours. */
export function snapshotOf(store: ZfsStore, dataset: Dataset): Snapshot | undefined {
  const id = snapshotIdOf(store, dataset.name);
  const isOurs = ownValue(dataset, userProperties.managed) === 'true' && ownValue(dataset, userProperties.snapshotName);
  // Deleted already: ZFS destroys it with the last of its clones.
  if (!id || !isOurs || valueIn(dataset, 'defer_destroy') === 'on') return undefined;
  return {
    id: textOf(id),
    sourceVolumeId: ownValue(dataset, userProperties.snapshotSource) ?? id.volumeId,
    sizeBytes: sizeOf(store, dataset),
    createdAt: new Date((numberOf(dataset, 'creation') ?? 0) * 1000),
    readyToUse: true,
  };
}

function sizeOf({ kind }: ZfsStore, dataset: Dataset): number {
  if (kind === 'volume') return numberOf(dataset, 'volsize') ?? 0;
  return Math.max(numberOf(dataset, 'referenced') ?? 0, numberOf(dataset, 'logicalreferenced') ?? 0);
}

function snapshotIdOf({ options }: ZfsStore, name: string): SnapshotId | undefined {
  const within = (parent: string | undefined) => parent !== undefined && name.startsWith(`${parent}/`);
  const { datasetParentName: volumes, detachedSnapshotsDatasetParentName: snapshots } = options;
  if (within(snapshots) && !name.includes('@')) return readSnapshotId(name.slice((snapshots ?? '').length + 1));
  if (within(volumes) && name.includes('@')) return readSnapshotId(name.slice(volumes.length + 1));
  return undefined;
}

/** A snapshot by its id; undefined when there is none. */
export async function readSnapshot(store: ZfsStore, call: CallContext, id: SnapshotId): Promise<Snapshot | undefined> {
  if (id.detached && store.options.detachedSnapshotsDatasetParentName === undefined) return undefined;
  const found = await store.zfs.readOne(call, snapshotDataset(store, id), snapshotProperties);
  return found && snapshotOf(store, found);
}
