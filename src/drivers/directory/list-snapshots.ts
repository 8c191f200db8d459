/** ListSnapshots: those of all engines, and those that are promised. */
import type { SnapshotFilter } from '../../core/driver.ts';
import type { Page, PageRequest, Snapshot } from '../../core/volume.ts';
import { inBatches } from '../common/in-batches.ts';
import { pageOfIds } from '../common/paging.ts';
import type { Call, Directory } from './directory.ts';
import { pendingSnapshot } from './pending-snapshot.ts';
import type { SnapshotEngine } from './snapshot-engines/engine.ts';
import type { Engines } from './snapshot-engines/engines.ts';
import { enginesInUse } from './snapshot-engines/engines.ts';
import { locateSnapshot, snapshotAt, underKey } from './snapshot-place.ts';
import type { SnapshotPromise } from './snapshot-promise.ts';
import { listPromises } from './snapshot-promise.ts';

type Load = () => Promise<Snapshot | undefined>;

export async function listSnapshots(
  directory: Directory,
  engines: Engines,
  call: Call,
  filter: SnapshotFilter,
  request: PageRequest,
): Promise<Page<Snapshot>> {
  const { snapshotId, sourceVolumeId } = filter;
  if (snapshotId !== undefined) {
    const place = await locateSnapshot(directory, engines, call, snapshotId);
    const snapshot = place && (await snapshotAt(call, place));
    const fits = snapshot && (sourceVolumeId === undefined || snapshot.sourceVolumeId === sourceVolumeId);
    return pageOf(new Map(fits ? [[snapshotId, async () => snapshot]] : []), request);
  }
  const all = await loaders(directory, engines, call, sourceVolumeId);
  return await pageOf(sourceVolumeId === undefined ? all : await ofVolume(all, sourceVolumeId), request);
}

async function pageOf(all: ReadonlyMap<string, Load>, request: PageRequest): Promise<Page<Snapshot>> {
  const page = pageOfIds([...all.keys()], request);
  const snapshots = await inBatches(page.ids, async (key) => await all.get(key)?.());
  const entries = snapshots.filter((snapshot) => snapshot !== undefined);
  return page.nextToken === undefined ? { entries } : { entries, nextToken: page.nextToken };
}

/** A page has as many entries as it should only if those that do not fit were left out before. */
async function ofVolume(all: ReadonlyMap<string, Load>, volumeId: string): Promise<ReadonlyMap<string, Load>> {
  const loaded = await inBatches([...all], async ([key, load]) => ({ key, snapshot: await load() }));
  const fitting = loaded.filter(({ snapshot }) => snapshot?.sourceVolumeId === volumeId);
  return new Map(fitting.map(({ key, snapshot }) => [key, async () => snapshot]));
}

/** By a text that sorts them. */
async function loaders(
  directory: Directory,
  engines: Engines,
  call: Call,
  volumeId: string | undefined,
): Promise<ReadonlyMap<string, Load>> {
  const promises = await listPromises(directory);
  const found = new Map<string, Load>();
  for (const [key, promise] of promises) {
    const engine = engines[promise.engine];
    const pending = promise.promised && promise.inner === undefined;
    if (pending) found.set(sortKey(engine, key), async () => pendingSnapshot(engine, key, promise));
  }
  for (const engine of enginesInUse(directory, engines)) {
    for (const one of await engine.list(call, volumeId)) {
      const promise = noteOf(promises, engine, one.key);
      if (promise && promise.inner === undefined && engine.leavesHalf) continue;
      const given = promise?.inner !== undefined && one.inner.startsWith(promise.inner);
      found.set(sortKey(engine, one.inner), async () => {
        const snapshot = await one.load();
        return snapshot && given ? underKey(engine, one.key, promise, snapshot) : snapshot;
      });
    }
  }
  return found;
}

function noteOf(
  promises: ReadonlyMap<string, SnapshotPromise>,
  engine: SnapshotEngine,
  key: string,
): SnapshotPromise | undefined {
  const promise = promises.get(key);
  return promise?.engine === engine.name ? promise : undefined;
}

function sortKey(engine: SnapshotEngine, text: string): string {
  return engine.leavesHalf ? `${engine.name}/${text}` : text;
}
