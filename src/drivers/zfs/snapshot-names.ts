/** Which snapshots there are, by their names alone. ZFS knows names of snapshots below one dataset only; those of CSI are of a whole connection. */
import type { Step } from '../../backends/shell/steps.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { requirePool } from './require-pool.ts';
import { snapshotOf, snapshotProperties } from './snapshot-answer.ts';
import { readSnapshotId, type SnapshotId, snapshotDataset } from './snapshot-id.ts';
import type { ZfsStore } from './store.ts';

/** Everything that might be a snapshot of ours: one round trip. */
export async function listSnapshotIds(store: ZfsStore, call: CallContext): Promise<readonly SnapshotId[]> {
  const { zfs, options, kind } = store;
  const { datasetParentName: volumes, detachedSnapshotsDatasetParentName: detached } = options;
  const list = (types: string, root: string): Step => ({
    argv: zfs.zfs('list', '-H', '-o', 'name', '-s', 'name', '-r', '-t', types, root),
    goOn: 'any',
  });
  const roots = detached === undefined ? [volumes] : [volumes, detached];
  const results = await zfs.run(call, 'zfs list', [
    list('snapshot', volumes),
    ...(detached === undefined ? [] : [list(kind, detached)]),
  ]);
  if (isMissing(results[0])) await requirePool(store, call);
  return results.flatMap((result, index) => {
    const root = `${roots[index]}/`;
    if (isMissing(result)) return [];
    if (result.code !== 0) throw new StepFailed(zfs.host, `zfs list ${root}`, result);
    const names = result.stdout.split('\n').filter((name) => name.startsWith(root));
    return names.flatMap((name) => readSnapshotId(name.slice(root.length)) ?? []);
  });
}

export interface SnapshotNames {
  /** Throws ALREADY_EXISTS when another volume has a snapshot of this name. From now on this one counts as there. */
  take(call: CallContext, id: SnapshotId): Promise<void>;
}

/** Milliseconds for which a list of all names is good enough: what another controller makes meanwhile is not known. */
const freshMs = 60_000;

export function createSnapshotNames(store: ZfsStore): SnapshotNames {
  let known = new Map<string, SnapshotId[]>();
  let taken: SnapshotId[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  function add(id: SnapshotId): void {
    const same = known.get(id.name);
    if (!same) known.set(id.name, [id]);
    else if (!same.some((one) => isSame(one, id))) same.push(id);
  }

  async function read(call: CallContext): Promise<void> {
    const begun = Date.now();
    const before = taken;
    taken = [];
    const ids = await listSnapshotIds(store, call);
    known = new Map();
    // Some that were promised may not have been made when the list was read.
    for (const id of [...ids, ...before, ...taken]) add(id);
    readAt = begun;
  }

  async function refresh(call: CallContext): Promise<void> {
    if (Date.now() - readAt < freshMs) return;
    const joined = reading;
    if (joined) return await joined.catch(() => refresh(call));
    reading = read(call).finally(() => {
      reading = undefined;
    });
    await reading;
  }

  return {
    async take(call, id) {
      await refresh(call);
      const others = (known.get(id.name) ?? []).filter((one) => !isSame(one, id));
      taken.push(id);
      add(id);
      const other = others.length > 0 ? await firstThere(store, call, others) : undefined;
      if (other === undefined) return;
      throw new CallError('ALREADY_EXISTS', `a snapshot ${id.name} exists already, of another volume: ${other}`);
    },
  };
}

/** What is on the list may be gone by now, or not be a snapshot of CSI. */
async function firstThere(store: ZfsStore, call: CallContext, ids: readonly SnapshotId[]): Promise<string | undefined> {
  const [name = '', ...others] = ids.map((id) => snapshotDataset(store, id));
  const found = await store.zfs.read(call, { name, others, properties: snapshotProperties });
  return found.find((dataset) => snapshotOf(store, dataset))?.name;
}

function isSame(one: SnapshotId, other: SnapshotId): boolean {
  return one.volumeId === other.volumeId && one.name === other.name && one.detached === other.detached;
}
