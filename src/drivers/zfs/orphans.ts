/** What crashes left, and what somebody else's hands did to volumes: found by looking at everything once. */
import type { Step, Steps } from '../../backends/shell/steps.ts';
import { type Dataset, numberOf, valueIn } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { Orphan } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import { isVolumeId } from '../common/volume-id.ts';
import { isUnfinished, unfinishedLook } from './birth.ts';
import { isOwnWork, workProperties } from './copy-work.ts';
import { dependantProperties, dependantsOf } from './dependants.ts';
import { finishVolume } from './finish-volume.ts';
import { inLots } from './lots.ts';
import { requirePool } from './require-pool.ts';
import type { ShownDevice } from './share.ts';
import type { ZfsStore } from './store.ts';
import { isTrash } from './trash.ts';
import { idOf, isComplete, isManaged, volumeProperties } from './volume-answer.ts';

export async function findOrphans(store: ZfsStore, call: CallContext, olderThanMs: number): Promise<readonly Orphan[]> {
  // Targets first: what is made meanwhile is seen with its dataset, or not at all.
  const shown = await store.share.shown?.(call);
  const volumes = await readAll(store, call, store.options.datasetParentName);
  const detached = store.options.detachedSnapshotsDatasetParentName;
  const all = [...volumes, ...(detached === undefined ? [] : await readAll(store, call, detached))];
  const before = (Date.now() - olderThanMs) / 1000;
  const old = all.filter((one) => (numberOf(one, 'creation') ?? 0) <= before);
  return [
    ...volumes.flatMap((one) => volumeOrphan(store, one, shown, old.includes(one))),
    ...(await bareOrphans(
      store,
      call,
      volumes.filter((one) => old.includes(one)),
    )),
    // Without the dataset of all volumes nothing is known of any: it may have been renamed.
    ...(volumes.length === 0 ? [] : (shown ?? [])).flatMap((one) => targetOrphan(store, one, volumes)),
    ...old.flatMap((one) => datasetOrphan(store, one, all)),
    ...old.flatMap((one) => snapshotOrphan(store, one, all)),
  ];
}

async function readAll(store: ZfsStore, call: CallContext, name: string): Promise<readonly Dataset[]> {
  const { zfs } = store;
  const properties = [...volumeProperties(store), ...dependantProperties, ...workProperties, 'creation'];
  const reading = await zfs.reading(call, {
    name,
    properties,
    depth: 'all',
    types: ['filesystem', 'volume', 'snapshot'],
  });
  const [result] = await zfs.run(call, 'zfs get', [{ argv: reading.argv }]);
  if (isMissing(result)) {
    await requirePool(store, call);
    return [];
  }
  return reading.datasets(result);
}

function isVolume({ options, kind }: ZfsStore, dataset: Dataset): boolean {
  const id = idOf(dataset);
  const isPlaced = dataset.name === `${options.datasetParentName}/${id}` && isVolumeId(id);
  return isPlaced && isManaged(dataset) && dataset.type === kind;
}

function volumeOrphan(
  store: ZfsStore,
  dataset: Dataset,
  shown: readonly ShownDevice[] | undefined,
  isOld: boolean,
): readonly Orphan[] {
  const { share } = store;
  if (!isVolume(store, dataset)) return [];
  const { name } = dataset;
  const fix = (permissions: 'yes' | 'no') => async (call: CallContext) => {
    await finishVolume(store, call, dataset, { permissions });
  };
  if (!isComplete(dataset)) {
    const why = 'its creation has not come to its end, and nobody has asked for it again';
    return isOld
      ? [{ name, kind: 'unfinished', why, remedy: 'finish it: share it and mark it as complete', fix: fix('yes') }]
      : [];
  }
  const isMissing = shown && !shown.some((one) => one.isShared && one.device === `/dev/zvol/${name}`);
  const why = isMissing ? 'no target shows it' : share.conditionOf?.(dataset)?.message;
  return why === undefined ? [] : [{ name, kind: 'not-shared', why, remedy: 'share it again', fix: fix('no') }];
}

/** Volumes that were made in one step, but have not got their mode and owner, which come after it. */
async function bareOrphans(
  store: ZfsStore,
  call: CallContext,
  volumes: readonly Dataset[],
): Promise<readonly Orphan[]> {
  const whole = volumes.filter((one) => isVolume(store, one) && isComplete(one) && one.type === 'filesystem');
  const looked = whole.flatMap((dataset) => {
    const path = valueIn(dataset, 'mountpoint') ?? '';
    return path.startsWith('/') && valueIn(dataset, 'mounted') === 'yes' ? [{ dataset, path }] : [];
  });
  const steps = inLots(looked).flatMap((lot) => unfinishedLook(store, ...lot.map(({ path }) => path)));
  const results = steps.length > 0 ? await store.zfs.run(call, 'find', steps as unknown as Steps) : [];
  const bare = looked.filter(({ dataset, path }) => results.some((result) => isUnfinished(dataset, path, result)));
  return bare.map(({ dataset }) => ({
    name: dataset.name,
    kind: 'unfinished',
    why: 'its root directory has not got its mode and owner, and nothing is in it',
    remedy: 'set them',
    async fix(inner) {
      await finishVolume(store, inner, dataset, { permissions: 'untouched' });
    },
  }));
}

function targetOrphan(store: ZfsStore, one: ShownDevice, volumes: readonly Dataset[]): readonly Orphan[] {
  const dataset = one.device.slice('/dev/zvol/'.length);
  const isOurs = dataset.startsWith(`${store.options.datasetParentName}/`);
  if (!isOurs || volumes.some(({ name }) => name === dataset)) return [];
  const why = `there is no ${dataset}`;
  const fix = async (call: CallContext) => {
    // It may have been made since it was looked for.
    const now = await store.zfs.readOne(call, dataset, ['type']);
    if (now) throw new CallError('ABORTED', `${dataset} is there now`);
    await one.remove(call);
  };
  return [{ name: one.name, kind: 'target', why, remedy: 'remove the target', fix }];
}

/** What only looks like it, by its name, is somebody's own. */
function datasetOrphan(store: ZfsStore, dataset: Dataset, all: readonly Dataset[]): readonly Orphan[] {
  const { datasetParentName, detachedSnapshotsDatasetParentName } = store.options;
  const { name, type } = dataset;
  const own = idOf(dataset);
  const isBelow = name === `${datasetParentName}/${own}` || name === `${detachedSnapshotsDatasetParentName}/${own}`;
  if (!isBelow || type === 'snapshot') return [];
  // One that is being received, or that a server holds, is busy and stays.
  const orphan = (kind: Orphan['kind'], why: string): readonly Orphan[] => {
    const fix = async (call: CallContext) => {
      const snapshots: Step = { argv: store.zfs.zfs('destroy', `${name}@%`), goOn: 'any' };
      await destroy(store, call, name, snapshots);
    };
    return [{ name, kind, why, remedy: 'destroy it', fix }];
  };
  if (isOwnWork(name, all)) {
    return orphan('copy', 'a copy that was not finished; the request that began it would go on with it');
  }
  return isTrash(dataset) ? orphan('trash', 'what is left of a deleted volume that was busy') : [];
}

function snapshotOrphan(store: ZfsStore, dataset: Dataset, all: readonly Dataset[]): readonly Orphan[] {
  const [owner = '', own] = dataset.name.split('@');
  if (own === undefined || isLeftover(owner)) return [];
  const [snapshot] = dependantsOf(owner, [dataset]).snapshots;
  if (snapshot?.kind !== 'temporary' || snapshot.clones.length > 0 || snapshot.isHeld) return [];
  const isSent = all.some(({ name }) => idOf({ name }).startsWith('copy:') && !name.includes('@'));
  // Which copy it is for cannot be told: it goes after the copies.
  const why = isSent ? 'made for a copy, perhaps one of these' : 'made for a copy or a clone that is not there';
  const { name } = dataset;
  return [{ name, kind: 'snapshot', why, remedy: 'destroy it', fix: (call) => destroy(store, call, name) }];
}

function isLeftover(name: string): boolean {
  return /^(?:copy|trash):/.test(idOf({ name }));
}

/** What is below it stays, and keeps it. */
async function destroy({ zfs }: ZfsStore, call: CallContext, name: string, ...before: readonly Step[]): Promise<void> {
  const results = await zfs.run(call, 'zfs destroy', [
    ...before,
    { argv: zfs.zfs('destroy', name) },
  ] as unknown as Steps);
  const result = results.at(-1) ?? results[0];
  if (result.code !== 0 && !isMissing(result)) throw new StepFailed(zfs.host, `zfs destroy ${name}`, result);
}
