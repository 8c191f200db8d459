/** Ids of snapshots: `<volume>@<name>`, or `<volume>/<name>` for one that is a dataset of its own. */
import { CallError } from '../../core/errors.ts';
import { isVolumeId } from '../common/volume-id.ts';
import type { ZfsStore } from './store.ts';
import { volumeDataset } from './store.ts';

export interface SnapshotId {
  readonly volumeId: string;
  readonly name: string;
  readonly detached: boolean;
}

/** zfs(8): what the name of a snapshot may have in it. */
const snapshotName = /^[A-Za-z0-9_:.-]+$/;

/** Undefined when it is not an id of this kind of driver. */
export function readSnapshotId(id: string): SnapshotId | undefined {
  const at = id.search(/[@/]/);
  if (at < 1) return undefined;
  const [volumeId, name] = [id.slice(0, at), id.slice(at + 1)];
  if (!isVolumeId(volumeId) || !snapshotName.test(name) || /^\.\.?$/.test(name)) return undefined;
  return { volumeId, name, detached: id[at] === '/' };
}

export function textOf({ volumeId, name, detached }: SnapshotId): string {
  return `${volumeId}${detached ? '/' : '@'}${name}`;
}

/** Throws INVALID_ARGUMENT for a name that ZFS cannot give to a snapshot. */
export function requireSnapshotName(name: string): string {
  // A plus sign is among the peer's characters, but not among those of ZFS.
  if (snapshotName.test(name) && !/^\.\.?$/.test(name)) return name;
  throw new CallError(
    'INVALID_ARGUMENT',
    `snapshot name ${JSON.stringify(name.slice(0, 64))} has other characters than letters, digits and _ : . -`,
  );
}

/** Where a snapshot is. Throws FAILED_PRECONDITION for a detached one when the connection says not where those are. */
export function snapshotDataset(store: ZfsStore, { volumeId, name, detached }: SnapshotId): string {
  return detached ? `${detachedParent(store)}/${volumeId}/${name}` : `${volumeDataset(store, volumeId)}@${name}`;
}

export function detachedParent({ options }: ZfsStore): string {
  const parent = options.detachedSnapshotsDatasetParentName;
  if (parent !== undefined) return parent;
  throw new CallError(
    'FAILED_PRECONDITION',
    'detached snapshots need zfs.detachedSnapshotsDatasetParentName in the connection',
  );
}
