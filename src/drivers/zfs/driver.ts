import type { Driver } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import { adoptDataset } from './adopt.ts';
import { zfsCapacity } from './capacity.ts';
import { expandVolume } from './expand-volume.ts';
import { findOrphans } from './orphans.ts';
import { zfsSnapshots } from './snapshots.ts';
import type { ZfsStore } from './store.ts';
import { createTrash } from './trash.ts';
import { zfsVolumes } from './volumes.ts';

/** Everything of a ZFS driver but its name and its node operations. */
export function zfsOperations(
  store: ZfsStore,
): Required<Pick<Driver, 'volumes' | 'snapshots' | 'expansion' | 'capacity' | 'repair' | 'probe' | 'close'>> {
  requireApart(store);
  const trash = createTrash(store);
  return {
    volumes: zfsVolumes(store, trash),
    snapshots: zfsSnapshots(store),
    expansion: { mode: 'ONLINE', expand: (call, request) => expandVolume(store, call, request) },
    capacity: (call, query) => zfsCapacity(store, call, query),
    repair: {
      adopt: (call, name) => adoptDataset(store, call, name),
      orphans: (call, olderThanMs) => findOrphans(store, call, olderThanMs),
    },
    probe: async () => {},
    async close() {
      await trash.close();
      await store.zfs.close();
    },
  };
}

/** Throws FAILED_PRECONDITION when volumes and detached snapshots lie within each other: each would be taken for the other. */
function requireApart({ options }: ZfsStore): void {
  const { datasetParentName: volumes, detachedSnapshotsDatasetParentName: snapshots } = options;
  if (snapshots === undefined) return;
  const within = (one: string, other: string) => `${one}/`.startsWith(`${other}/`);
  if (!within(volumes, snapshots) && !within(snapshots, volumes)) return;
  throw new CallError(
    'FAILED_PRECONDITION',
    `zfs.datasetParentName (${volumes}) and zfs.detachedSnapshotsDatasetParentName (${snapshots}) must not contain each other`,
  );
}
