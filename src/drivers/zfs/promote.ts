/** A volume that is to be deleted, but has clones: one of them takes over what they share with it (zfs-promote(8)), and the volume is free to go. */
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { isVolumeId } from '../common/volume-id.ts';
import type { Dependants, Snapshot } from './dependants.ts';
import type { ZfsStore } from './store.ts';
import { idOf } from './volume-answer.ts';

/** Whether a clone is a volume of the same connection. Others are somebody else's, and keep a volume from being deleted. */
export function canBePromoted({ options }: ZfsStore, clone: string): boolean {
  const id = idOf({ name: clone });
  return isVolumeId(id) && clone === `${options.datasetParentName}/${id}`;
}

export interface Promotion {
  /** Those that the volume still has, without clones. */
  readonly left: readonly Snapshot[];
  /** Names of those that a clone has now, and that nobody needs any more once the volume is gone. */
  readonly moved: readonly string[];
}

/**
 * Promotes a clone of the latest snapshot that has any: this snapshot and all before it become the clone's. Other clones become clones of it. The volume
 * stays as usable as it was.
 */
export async function promoteClone(store: ZfsStore, call: CallContext, dependants: Dependants): Promise<Promotion> {
  const { zfs } = store;
  const snapshots = [...dependants.snapshots].sort((one, other) => one.createdIn - other.createdIn);
  const at = snapshots.findLastIndex(({ clones }) => clones.length > 0);
  const clone = snapshots[at]?.clones[0];
  if (clone === undefined) return { left: snapshots, moved: [] };
  const [result] = await zfs.run(call, 'zfs promote', [{ argv: zfs.zfs('promote', clone) }]);
  if (result.code !== 0) throw new StepFailed(zfs.host, `zfs promote ${clone}`, result);
  const moved = snapshots.slice(0, at + 1).map(({ name }) => `${clone}${name.slice(name.indexOf('@'))}`);
  return { left: snapshots.slice(at + 1), moved };
}
