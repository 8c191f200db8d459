/** What creations leave that were interrupted and never asked for again: removed when what they were to make is deleted. */
import type { Step, StepResults, Steps } from '../../backends/shell/steps.ts';
import { isMissing } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { detachedWorkOf, isWork, removeWorks, workOf, worksBelow } from './copy-work.ts';
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
  const results = await zfs.run(call, 'zfs list', [worksBelow(store, options.datasetParentName), ...lists]);
  const [works, first] = results;
  if (first && isMissing(first)) await requirePool(store, call);
  await removeWorks(store, call, works.stdout.split('\n'), workOf(volumeDataset(store, volumeId)));
  const made = results
    .slice(1)
    .flatMap(({ stdout }) => stdout.split('\n'))
    .filter((name) => name.endsWith(`@${forVolume(volumeId)}`) && !isWork(name.slice(0, name.indexOf('@'))));
  const [one, ...others] = made.map((name): Step => ({ argv: zfs.zfs('destroy', '-d', name), goOn: 'any' }));
  if (one) await zfs.run(call, 'zfs destroy', [one, ...others]);
}

/**
 * Of a detached snapshot that is not there: half a copy, the volume's snapshot that was made for it, and the folder if it is empty. `first`: steps
 * before them; their results come first.
 */
export async function removeDetachedLeftovers(
  store: ZfsStore,
  call: CallContext,
  { volumeId, name }: SnapshotId,
  parent: string,
  first: readonly Step[] = [],
): Promise<StepResults> {
  const { zfs } = store;
  const remove = (...args: readonly string[]): Step => ({ argv: zfs.zfs('destroy', ...args), goOn: 'any' });
  const results = await zfs.run(call, 'zfs destroy', [
    ...first,
    remove('-d', `${volumeDataset(store, volumeId)}@${forSnapshot(name)}`),
    remove(`${parent}/${volumeId}`),
    worksBelow(store, parent),
  ] as unknown as Steps);
  const works = results.length === first.length + 3 ? (results.at(-1)?.stdout ?? '') : '';
  await removeWorks(store, call, works.split('\n'), detachedWorkOf(parent, volumeId, name));
  return results;
}

function isGiven(root: string | undefined): root is string {
  return root !== undefined;
}
