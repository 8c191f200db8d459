/** The snapshot operations of a ZFS driver. */

import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, ownValue } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { SnapshotFilter, SnapshotOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Page, PageRequest, Snapshot } from '../../core/volume.ts';
import { pageOfIds } from '../common/paging.ts';
import { isVolumeId } from '../common/volume-id.ts';
import { createSnapshot } from './create-snapshot.ts';
import { removeDetachedLeftovers } from './leftovers.ts';
import { createNamePages } from './name-pages.ts';
import { requirePool } from './require-pool.ts';
import { readSnapshot, snapshotOf, snapshotProperties } from './snapshot-answer.ts';
import { detachedParent, readSnapshotId, snapshotDataset, textOf } from './snapshot-id.ts';
import { createSnapshotNames, listSnapshotIds } from './snapshot-names.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';

export function zfsSnapshots(store: ZfsStore): SnapshotOperations {
  const names = createSnapshotNames(store);
  return {
    create: (call, spec) => createSnapshot(store, names, call, spec),
    delete: (call, id) => deleteSnapshot(store, call, id),
    async get(call, id) {
      const snapshotId = readSnapshotId(id);
      const found = snapshotId && (await readSnapshot(store, call, snapshotId));
      if (!found) throw new CallError('NOT_FOUND', `there is no snapshot ${JSON.stringify(id)}`);
      return found;
    },
    list: snapshotList(store),
  };
}

/** Success when it is gone. An attached one with clones is marked for ZFS, which destroys it with the last of them. */
async function deleteSnapshot(store: ZfsStore, call: CallContext, id: string): Promise<void> {
  const snapshotId = readSnapshotId(id);
  if (!snapshotId) return;
  if (snapshotId.detached && store.options.detachedSnapshotsDatasetParentName === undefined) return;
  const { zfs } = store;
  const name = snapshotDataset(store, snapshotId);
  const dataset = await zfs.readOne(call, name, snapshotProperties);
  if (!dataset) {
    await requirePool(store, call);
    if (!snapshotId.detached) return;
    await removeDetachedLeftovers(store, call, snapshotId, detachedParent(store));
    return;
  }
  if (ownValue(dataset, userProperties.managed) !== 'true') {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${name} on ${zfs.host} was not made as a snapshot, and is not deleted as one`,
    );
  }
  const results = snapshotId.detached
    ? await removeDetachedLeftovers(store, call, snapshotId, detachedParent(store), [
        // Snapshots of it were made for volumes that began with it. Clones of them keep it: they are neither -r nor -R.
        { argv: zfs.zfs('destroy', `${name}@%`), goOn: 'any' },
        { argv: zfs.zfs('destroy', '-f', name) },
      ])
    : await zfs.run(call, 'zfs destroy', [{ argv: zfs.zfs('destroy', '-d', name) }]);
  const result = results[snapshotId.detached ? 1 : 0] ?? results[0];
  if (result.code !== 0 && !isMissing(result)) throw new StepFailed(zfs.host, `zfs destroy ${name}`, result);
}

function snapshotList(store: ZfsStore) {
  const pages = createNamePages<Snapshot>({
    ids: async (call) => (await listSnapshotIds(store, call)).map(textOf),
    async read(call, ids) {
      const [name = '', ...others] = ids
        .flatMap((id) => readSnapshotId(id) ?? [])
        .map((id) => snapshotDataset(store, id));
      const datasets = await store.zfs.read(call, { name, others, properties: snapshotProperties });
      return new Map(
        datasets.flatMap((one) => snapshotOf(store, one) ?? []).map((snapshot) => [snapshot.id, snapshot]),
      );
    },
  });
  return async (call: CallContext, filter: SnapshotFilter, page: PageRequest): Promise<Page<Snapshot>> => {
    const isWhole = filter.snapshotId === undefined && filter.sourceVolumeId === undefined;
    if (isWhole && (page.limit || page.token)) return await pages(call, page);
    const found = await findSnapshots(store, call, filter);
    const byId = new Map(found.map((snapshot) => [snapshot.id, snapshot]));
    const { ids, nextToken } = pageOfIds([...byId.keys()], page);
    const entries = ids.flatMap((id) => byId.get(id) ?? []);
    return nextToken === undefined ? { entries } : { entries, nextToken };
  };
}

async function findSnapshots(store: ZfsStore, call: CallContext, filter: SnapshotFilter): Promise<readonly Snapshot[]> {
  const { snapshotId, sourceVolumeId } = filter;
  if (snapshotId !== undefined) {
    const id = readSnapshotId(snapshotId);
    const found = id && (await readSnapshot(store, call, id));
    return found && (sourceVolumeId === undefined || found.sourceVolumeId === sourceVolumeId) ? [found] : [];
  }
  if (sourceVolumeId !== undefined && !isVolumeId(sourceVolumeId)) return [];
  const { datasetParentName: volumes, detachedSnapshotsDatasetParentName: detached } = store.options;
  const attachedRoot = sourceVolumeId === undefined ? volumes : volumeDataset(store, sourceVolumeId);
  const detachedRoot = detached && (sourceVolumeId === undefined ? detached : `${detached}/${sourceVolumeId}`);
  return await readAll(store, call, [
    { name: attachedRoot, types: ['snapshot'] },
    ...(detachedRoot ? [{ name: detachedRoot, types: [store.kind] as const }] : []),
  ]);
}

async function readAll(
  store: ZfsStore,
  call: CallContext,
  roots: readonly { readonly name: string; readonly types: readonly Dataset['type'][] }[],
): Promise<readonly Snapshot[]> {
  const { zfs } = store;
  const readings = await Promise.all(
    roots.map((root) => zfs.reading(call, { ...root, depth: 'all', properties: snapshotProperties })),
  );
  const steps = readings.map(({ argv }) => ({ argv, goOn: 'any' as const })) as unknown as [Step, ...Step[]];
  const results = await zfs.run(call, 'zfs get', steps);
  if (results[0] && isMissing(results[0])) await requirePool(store, call);
  return readings.flatMap((reading, index) => {
    const result = results[index];
    if (!result || isMissing(result)) return [];
    return reading.datasets(result).flatMap((dataset) => snapshotOf(store, dataset) ?? []);
  });
}
