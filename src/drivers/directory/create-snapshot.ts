/**
 * CreateSnapshot. The copy is a job (snapshot-jobs.ts); a call waits for it for a moment, and then answers that the snapshot is not ready yet.
 * The same call again, GetSnapshot and ListSnapshots tell when it is (CSI spec, "The ready_to_use Parameter").
 */
import type { CallContext } from '../../core/call.ts';
import { untilOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Snapshot, SnapshotSpec } from '../../core/volume.ts';
import { within } from '../../core/within.ts';
import { sameParameters } from '../common/parameters.ts';
import type { Copies } from './copies.ts';
import type { Directory } from './directory.ts';
import { isId } from './layout.ts';
import { pendingSnapshot } from './pending-snapshot.ts';
import type { SnapshotEngine } from './snapshot-engines/engine.ts';
import { nameTaken, otherParameters } from './snapshot-engines/name-taken.ts';
import { noVolume, requireVolume } from './snapshot-engines/require-volume.ts';
import { requireSnapshotName } from './snapshot-id.ts';
import type { SnapshotJob } from './snapshot-jobs.ts';
import { jobOf, startJob, takeFailure } from './snapshot-jobs.ts';
import type { SnapshotPromise } from './snapshot-promise.ts';
import { isElsewhere, readPromise, removePromise } from './snapshot-promise.ts';

export interface CreateParts {
  readonly directory: Directory;
  readonly copies: Copies;
  readonly engine: SnapshotEngine;
}

/** Takes a snapshot, or answers with the one that an equal request took or began before. */
export async function createSnapshot(parts: CreateParts, call: CallContext, spec: SnapshotSpec): Promise<Snapshot> {
  requireSnapshotName(spec.name);
  const { directory, engine } = parts;
  // Nothing else becomes part of a path.
  if (!isId('v', spec.sourceVolumeId)) throw noVolume(spec.sourceVolumeId);
  const key = engine.keyOf(spec.sourceVolumeId, spec.name);
  const job = jobOf(directory, key);
  if (job) {
    requireSame(spec, { ...job.task.spec, engine: job.engine.name }, engine);
    return await answerOf(directory, call, job);
  }
  const failure = takeFailure(directory, key);
  if (failure) throw failure;
  const promise = await readPromise(directory, key);
  if (promise) requireSame(spec, promise, engine);
  const known = await knownSnapshot(parts, call, spec, key, promise);
  if (known) return known;
  const volume = await requireVolume(directory, spec.sourceVolumeId);
  const createdAt = promise && promise.inner === undefined ? new Date(promise.createdAt) : new Date();
  const sizeBytes = volume?.sizeBytes ?? 0;
  // Another call may have begun one while this one looked.
  const begun = jobOf(directory, key) ?? startJob({ ...parts, task: { spec, key, createdAt, sizeBytes } });
  return await answerOf(directory, call, begun);
}

/** What is there already, or being made by another process. */
async function knownSnapshot(
  { directory, engine }: CreateParts,
  call: CallContext,
  spec: SnapshotSpec,
  key: string,
  promise: SnapshotPromise | undefined,
): Promise<Snapshot | undefined> {
  if (promise?.inner !== undefined) {
    const kept = await engine.get(call, promise.inner);
    return kept && { ...kept, id: engine.idOf(key), createdAt: new Date(promise.createdAt) };
  }
  if (promise && (await isElsewhere(directory, key, promise))) {
    if (promise.promised) return pendingSnapshot(engine, key, promise);
    throw new CallError('ABORTED', `snapshot ${spec.name} is being taken by another process; try again`);
  }
  // What a broken copy left must not be taken for a whole one.
  if (promise && engine.leavesHalf) return undefined;
  const found = await engine.find(call, spec, key);
  if (found && promise) await removePromise(directory, key);
  return found;
}

async function answerOf(directory: Directory, call: CallContext, job: SnapshotJob): Promise<Snapshot> {
  const patienceMs = directory.options.snapshots.answer_within * 1000;
  const { sourceVolumeId } = job.task.spec;
  try {
    const what = `copy of volume ${sourceVolumeId}`;
    const soon = await call.waitingFor(what, () => untilOver(call.signal, within(patienceMs, job.ended)));
    if (soon === undefined && (await job.promise())) return pendingOf(job);
  } catch (error) {
    // Nobody was told of it, and nobody waits for it any more.
    if (!job.isPromised())
      await job.cancel(error instanceof CallError ? error : new CallError('CANCELLED', 'cancelled'));
    throw error;
  }
  const ended = await job.ended;
  if (!(ended instanceof CallError)) return ended;
  takeFailure(directory, job.task.key);
  throw ended;
}

function pendingOf({ engine, task }: SnapshotJob): Snapshot {
  const { key, spec, createdAt, sizeBytes } = task;
  return {
    id: engine.idOf(key),
    sourceVolumeId: spec.sourceVolumeId,
    sizeBytes,
    createdAt,
    readyToUse: false,
  };
}

function requireSame(
  spec: SnapshotSpec,
  other: Pick<SnapshotPromise, 'name' | 'sourceVolumeId' | 'engine'> & Pick<SnapshotSpec, 'parameters'>,
  engine: SnapshotEngine,
): void {
  if (other.sourceVolumeId !== spec.sourceVolumeId || other.name !== spec.name) {
    throw nameTaken(spec, other.sourceVolumeId, other.name);
  }
  if (other.engine !== engine.name || !sameParameters(other.parameters, spec.parameters)) {
    throw otherParameters(spec.name);
  }
}
