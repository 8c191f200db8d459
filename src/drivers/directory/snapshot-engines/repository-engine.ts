/** A snapshot engine whose snapshots are in a repository: what restic and kopia have in common. */
import { posix } from 'node:path';
import type { Snapshot, SnapshotSpec } from '../../../core/volume.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { Call, Directory } from '../directory.ts';
import { flush } from '../flush.ts';
import { formatRepositoryId, snapshotKey } from '../snapshot-id.ts';
import type { Source } from '../source.ts';
import { whileMeasured } from '../while-measured.ts';
import type { SnapshotEngine, SnapshotTask } from './engine.ts';
import { nameTaken } from './name-taken.ts';
import type { Repository, Stored } from './repository.ts';
import { requireVolume } from './require-volume.ts';

export function createRepositoryEngine(directory: Directory, repository: Repository): SnapshotEngine {
  const { maxIdBytes } = directory;
  const { name } = repository;

  const snapshotOf = (stored: Stored): Snapshot => ({
    id: formatRepositoryId(name, stored.inner, maxIdBytes),
    sourceVolumeId: stored.volumeId,
    sizeBytes: stored.sizeBytes,
    createdAt: stored.createdAt,
    readyToUse: true,
  });
  const keyOf = (volumeId: string, snapshot: string) => snapshotKey(name, volumeId, snapshot, maxIdBytes);
  const ours = async (call: Call, spec: SnapshotSpec) =>
    (await repository.named(call, spec.name)).filter((stored) => isOurs(directory, stored));

  async function take(call: Call, task: SnapshotTask, progress: CopyProgress): Promise<Snapshot> {
    const { sourceVolumeId } = task.spec;
    await requireVolume(directory, sourceVolumeId);
    const path = await directory.hostView.pathOf(call, directory.layout.data('v', sourceVolumeId));
    return snapshotOf(await repository.create(call, task, path, progress));
  }

  return {
    name,
    leavesHalf: true,
    keyOf,
    idOf: (inner) => formatRepositoryId(name, inner, maxIdBytes),
    async find(call, spec) {
      const found = await ours(call, spec);
      const same = found.filter(({ volumeId }) => volumeId === spec.sourceVolumeId).at(-1);
      const [other] = found;
      if (!same && other) throw nameTaken(spec, other.volumeId);
      return same && snapshotOf(await repository.measured(call, same));
    },
    take,
    async get(call, inner) {
      const stored = await repository.get(call, inner);
      return stored && snapshotOf(await repository.measured(call, stored));
    },
    async list(call, volumeId) {
      const all = (await repository.list(call)).filter((stored) => isOurs(directory, stored));
      // One without a name was not finished: its id was never given out.
      return all
        .filter((stored) => stored.name !== '' && (volumeId === undefined || stored.volumeId === volumeId))
        .map((stored) => ({
          key: keyOf(stored.volumeId, stored.name),
          inner: stored.inner,
          load: async () => snapshotOf(stored),
        }));
    },
    async source(call, inner) {
      const stored = await repository.get(call, inner);
      return stored && sourceOf(directory, repository, await repository.measured(call, stored));
    },
    async delete(call, inner) {
      const stored = await repository.get(call, inner);
      if (stored)
        await call.waitingFor(`\`${name}\` to remove snapshot ${inner}`, () => repository.delete(call, stored));
    },
    async discard(call, { spec }) {
      for (const stored of await ours(call, spec)) {
        if (stored.volumeId === spec.sourceVolumeId) await repository.delete(call, stored);
      }
    },
    close: () => repository.close(),
  };
}

/**
 * Whether a snapshot in the repository was taken by this driver or by democratic-csi in its place. Others may have volumes of the same names there,
 * but not on the same host at the same path.
 *
 * democratic-csi gave all its restic snapshots the host "undefined". Where several nodes have volumes of their own at the same path, nobody can
 * tell whose these are: they are found by their ids only.
 */
function isOurs({ party, options, layout }: Directory, stored: Stored): boolean {
  const isHost = stored.host === party.host || (stored.host === 'undefined' && !party.perNode);
  const bases = [layout.base, options.controllerBasePath, options.shareBasePath];
  const isPath = bases.some((base) => posix.join(base, 'v', stored.volumeId) === stored.path);
  return isHost && isPath && (stored.instanceId ?? '') === (party.instanceId ?? '');
}

function sourceOf(directory: Directory, repository: Repository, stored: Stored): Source {
  return {
    sizeBytes: stored.sizeBytes,
    title: `${repository.name} snapshot ${stored.inner}`,
    engine: repository.name,
    // A restore has to begin anew: what is there of a file does not tell how far it was.
    identity: undefined,
    async fill(call, where, progress) {
      await whileMeasured(directory, call, where.target, progress, () => repository.restore(call, stored, where));
      await flush(directory, call, where.target);
    },
  };
}
