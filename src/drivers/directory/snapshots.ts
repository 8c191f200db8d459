/** The snapshot operations of a directory driver, whatever its snapshots are kept by. */
import type { SnapshotOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { ActiveOperation } from '../../core/operations.ts';
import type { Copies } from './copies.ts';
import { createSnapshot } from './create-snapshot.ts';
import { deleteSnapshot } from './delete-snapshot.ts';
import type { Call, Directory } from './directory.ts';
import { listSnapshots } from './list-snapshots.ts';
import { resumeSnapshots } from './resume-snapshots.ts';
import { createEngines, engineFor } from './snapshot-engines/engines.ts';
import { parseSnapshotId } from './snapshot-id.ts';
import { jobsOf } from './snapshot-jobs.ts';
import { locateSnapshot, snapshotAt } from './snapshot-place.ts';
import { listPromises } from './snapshot-promise.ts';
import type { Source } from './source.ts';
import type { Sweeper } from './sweep.ts';

export interface Snapshots {
  readonly operations: Required<SnapshotOperations>;
  /** What a volume can be filled from. Undefined: no such snapshot. FAILED_PRECONDITION: it is not ready. */
  open(call: Call, snapshotId: string): Promise<Source | undefined>;
  /** Throws FAILED_PRECONDITION while a snapshot of this volume is promised that is not whole. */
  requireNonePromised(volumeId: string): Promise<void>;
  /** Goes on with what a process promised that is no more. Never rejects. */
  resume(): Promise<void>;
  /** The copies that go on without a call: the others are their calls' own. */
  active(): readonly ActiveOperation[];
  /** Resolves when {@link active} is empty. */
  idle(): Promise<void>;
  /** Stops the copies, so that this process or another can go on with them later. */
  close(): Promise<void>;
}

export function createSnapshots(directory: Directory, sweeper: Sweeper, copies: Copies): Snapshots {
  const { log } = directory;
  const engines = createEngines(directory);
  let closed = false;

  async function resume(): Promise<void> {
    if (closed) return;
    try {
      await resumeSnapshots(directory, engines, copies);
    } catch (error) {
      log.warn('promised snapshots could not be looked for', { error });
    }
  }

  return {
    operations: {
      async create(call, spec) {
        await sweeper.sweep(call);
        await resume();
        const engine = engineFor(directory, engines, spec);
        return await createSnapshot({ directory, copies, engine }, call, spec);
      },
      async delete(call, id) {
        if (!parseSnapshotId(id)) return;
        await sweeper.sweep(call);
        await deleteSnapshot(directory, engines, call, id);
      },
      async get(call, id) {
        const place = await locateSnapshot(directory, engines, call, id);
        const snapshot = place && (await snapshotAt(call, place));
        if (!snapshot) throw new CallError('NOT_FOUND', `there is no snapshot ${JSON.stringify(id)}`);
        // Whoever asks may be waiting for a copy that nobody does any more.
        if (!snapshot.readyToUse) await resume();
        return snapshot;
      },
      async list(call, filter, request) {
        const page = await listSnapshots(directory, engines, call, filter, request);
        if (page.entries.some(({ readyToUse }) => !readyToUse)) await resume();
        return page;
      },
    },
    async open(call, id) {
      const place = await locateSnapshot(directory, engines, call, id);
      const source = place?.inner === undefined ? undefined : await place.engine.source(call, place.inner);
      if (source || !place?.promise?.promised) return source;
      throw new CallError('FAILED_PRECONDITION', `snapshot ${id} is not ready to use: it is still being copied`);
    },
    async requireNonePromised(volumeId) {
      for (const [key, { sourceVolumeId, promised, inner, engine, name }] of await listPromises(directory)) {
        if (sourceVolumeId !== volumeId || !promised || inner !== undefined) continue;
        const id = engines[engine].idOf(key);
        throw new CallError(
          'FAILED_PRECONDITION',
          `volume ${volumeId} is in use: snapshot ${name} is still being copied from it; wait for that, or delete the snapshot ${id} first`,
        );
      }
    },
    resume,
    active: () =>
      jobsOf(directory)
        .filter((job) => job.isPromised())
        .map((job) => job.active()),
    async idle() {
      for (let jobs = jobsOf(directory); jobs.length > 0; jobs = jobsOf(directory)) {
        await Promise.all(jobs.map((job) => job.ended));
      }
    },
    async close() {
      closed = true;
      const why = new CallError('UNAVAILABLE', 'the plugin is stopping; the same call again will complete this');
      await Promise.all(jobsOf(directory).map((job) => job.cancel(why)));
      await Promise.all(Object.values(engines).map((engine) => engine.close()));
    },
  };
}
