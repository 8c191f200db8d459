/** What creations leave that were interrupted and never asked for again: removed when what they were to make is deleted. */
import type { Step } from '../../backends/shell/steps.ts';
import { isMissing } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { workNameOf } from './copy-dataset.ts';
import { requirePool } from './require-pool.ts';
import type { SnapshotId } from './snapshot-id.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { forSnapshot, forVolume } from './user-properties.ts';

/**
 * Of a volume that is not there: half a copy, and the snapshot of its source that was made for it. Nothing tells what the source was, so all
 * snapshots' names are read.
 */
export async function removeVolumeLeftovers(store: ZfsStore, call: CallContext, volumeId: string): Promise<void> {
  const { zfs, options } = store;
  const roots = [options.datasetParentName, options.detachedSnapshotsDatasetParentName].filter(isGiven);
  const lists = roots.map((root): Step => {
    return { argv: zfs.zfs('list', '-H', '-o', 'name', '-s', 'name', '-r', '-t', 'snapshot', root), goOn: 'any' };
  });
  const half: Step = { argv: zfs.zfs('destroy', '-r', workNameOf(volumeDataset(store, volumeId))), goOn: 'any' };
  const results = await zfs.run(call, 'zfs list', [half, ...lists]);
  if (results[1] && isMissing(results[1])) await requirePool(store, call);
  const made = results
    .slice(1)
    .flatMap(({ stdout }) => stdout.split('\n'))
    .filter((name) => name.endsWith(`@${forVolume(volumeId)}`));
  const [first, ...others] = made.map((name): Step => ({ argv: zfs.zfs('destroy', '-d', name), goOn: 'any' }));
  if (first) await zfs.run(call, 'zfs destroy', [first, ...others]);
}

/** Steps for a detached snapshot that is not there: half a copy, the volume's snapshot that was made for it, and the folder if it is empty. */
export function detachedLeftovers(store: ZfsStore, { volumeId, name }: SnapshotId, parent: string): [Step, ...Step[]] {
  const { zfs } = store;
  const remove = (...args: readonly string[]): Step => ({ argv: zfs.zfs('destroy', ...args), goOn: 'any' });
  return [
    remove('-r', detachedWorkName(parent, { volumeId, name })),
    remove('-d', `${volumeDataset(store, volumeId)}@${forSnapshot(name)}`),
    remove(`${parent}/${volumeId}`),
  ];
}

/** Where the copy of a detached snapshot is while it is not whole. */
export function detachedWorkName(parent: string, { volumeId, name }: Pick<SnapshotId, 'volumeId' | 'name'>): string {
  return `${parent}/copy:${volumeId}:${name}`;
}

function isGiven(root: string | undefined): root is string {
  return root !== undefined;
}
