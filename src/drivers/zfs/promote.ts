/** A volume that is to be deleted, but has clones: one of them takes over what they share with it (zfs-promote(8)), and the volume is free to go. */
import type { Step, Steps } from '../../backends/shell/steps.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { isVolumeId } from '../common/volume-id.ts';
import type { Dependants, Snapshot } from './dependants.ts';
import { inLots } from './lots.ts';
import type { ZfsStore } from './store.ts';
import { isTrashName } from './trash.ts';
import { idOf } from './volume-answer.ts';

/**
 * Whether a clone is a volume of the same connection, and may be promoted, or what is left of one. Others are somebody else's, and keep a volume from
 * being deleted.
 */
export function canBePromoted({ options }: ZfsStore, clone: string): boolean {
  const id = idOf({ name: clone });
  if (clone !== `${options.datasetParentName}/${id}`) return false;
  return isTrashName(clone) || (options.deleteWithClones === 'promote' && isVolumeId(id));
}

export interface Promotion {
  /** Those that the volume still has. None has clones. */
  readonly left: readonly Snapshot[];
  /** Names of those that a clone has now, and that nobody needs any more once the volume is gone. */
  readonly moved: readonly string[];
}

/**
 * Promotes a clone of the latest snapshot that has any: this snapshot and all before it become the clone's. Other clones become clones of it. The volume
 * stays as usable as it was. Snapshots without clones are destroyed before: nobody needs them, and the clone may have its own of the same names, as
 * those that are made by the clock have.
 */
export async function promoteClone(store: ZfsStore, call: CallContext, dependants: Dependants): Promise<Promotion> {
  const { zfs } = store;
  const snapshots = [...dependants.snapshots].sort((one, other) => one.createdIn - other.createdIn);
  const cloned = snapshots.filter(({ clones }) => clones.length > 0);
  const { clones = [] } = cloned.at(-1) ?? {};
  // One that stays is a better place for what others may need.
  const clone = clones.find((one) => !isTrashName(one)) ?? clones[0];
  if (clone === undefined) return { left: snapshots, moved: [] };
  const own = (name: string) => name.slice(name.indexOf('@') + 1);
  const idle = snapshots.filter((one) => !cloned.includes(one)).map(({ name }) => own(name));
  const promote: Step = { argv: zfs.zfs('promote', clone) };
  const volume = snapshots[0]?.name.split('@', 1)[0];
  const destroy = inLots(idle).map((lot): Step => ({ argv: zfs.zfs('destroy', `${volume}@${lot.join(',')}`) }));
  const results = await zfs.run(call, 'zfs promote', [...destroy, promote] as unknown as Steps);
  const last = results.at(-1) ?? results[0];
  if (last.code !== 0) throw new StepFailed(zfs.host, `zfs promote ${clone}`, last);
  return { left: [], moved: cloned.map(({ name }) => `${clone}@${own(name)}`) };
}
