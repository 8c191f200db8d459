/**
 * Snapshots being taken by this process. A copy belongs to no call: it goes on when the answer was given that the snapshot is not ready yet,
 * and whoever asks again finds it here, whichever driver instance he asks.
 */
import { createActivity } from '../../core/activity.ts';
import { asCallError, type CallError } from '../../core/errors.ts';
import type { ActiveOperation } from '../../core/operations.ts';
import type { Snapshot } from '../../core/volume.ts';
import { thisOwner } from '../../node/owner.ts';
import type { Copies } from './copies.ts';
import type { CopyProgress } from './copy-progress.ts';
import type { Directory } from './directory.ts';
import type { SnapshotEngine, SnapshotTask } from './snapshot-engines/engine.ts';
import { parseSnapshotId } from './snapshot-id.ts';
import { underKey } from './snapshot-place.ts';
import type { SnapshotPromise } from './snapshot-promise.ts';
import { readPromise, removePromise, touchPromise, writePromise } from './snapshot-promise.ts';
import { heartbeatMs } from './work.ts';

export interface SnapshotJob {
  /** The driver that does it. */
  readonly directory: Directory;
  readonly task: SnapshotTask;
  readonly engine: SnapshotEngine;
  /** The snapshot, whole, or why there is none. Never rejects. */
  readonly ended: Promise<Snapshot | CallError>;
  readonly active: () => ActiveOperation;
  /** Sees to it that the snapshot outlives this process, since somebody is about to be told of it. False: it has just ended. */
  promise(): Promise<boolean>;
  isPromised(): boolean;
  /** Ends it and resolves when nothing works for it any more. What was promised stays promised. */
  cancel(reason: CallError): Promise<void>;
}

/** By base path and key. */
const running = new Map<string, SnapshotJob>();

/** Why the last copy of a promised snapshot failed, until somebody is told. */
const failures = new Map<string, CallError>();

const nameOf = (directory: Directory, key: string) => `${directory.layout.base}\0${key}`;

/** All jobs of one driver. */
export function jobsOf(directory: Directory): readonly SnapshotJob[] {
  return [...running.values()].filter((job) => job.directory === directory);
}

/** The job for a key, whichever driver of this process does it. */
export function jobOf(directory: Directory, key: string): SnapshotJob | undefined {
  return running.get(nameOf(directory, key));
}

/** The failure to be told now; it is told once, and then the copy may begin again. */
export function takeFailure(directory: Directory, key: string): CallError | undefined {
  const name = nameOf(directory, key);
  const failure = failures.get(name);
  failures.delete(name);
  return failure;
}

export function hasFailed(directory: Directory, key: string): boolean {
  return failures.has(nameOf(directory, key));
}

export interface JobParts {
  readonly directory: Directory;
  readonly copies: Copies;
  readonly engine: SnapshotEngine;
  readonly task: SnapshotTask;
}

/** Begins to take a snapshot. There must be no job for it yet. */
export function startJob(parts: JobParts): SnapshotJob {
  const { directory, copies, engine, task } = parts;
  const { key, spec } = task;
  const name = nameOf(directory, key);
  const controller = new AbortController();
  const activity = createActivity();
  const startedAt = Date.now();
  const title = `snapshot ${spec.name} of volume ${spec.sourceVolumeId}`;
  const call = { signal: controller.signal, log: directory.log, waitingFor: activity.waitingFor };
  let progress: CopyProgress | undefined;
  let promised = false;
  let noted = false;
  let closing = false;
  let notes: Promise<unknown> = Promise.resolve();

  /** What is noted last must be what was decided last. */
  function inTurn(write: () => Promise<void>): Promise<void> {
    const turn = notes.then(write);
    notes = turn.catch(() => {});
    return turn;
  }

  async function note(more: Partial<SnapshotPromise> = {}): Promise<void> {
    const { name: snapshotName, sourceVolumeId, parameters } = spec;
    await writePromise(directory, key, {
      format: 1,
      name: snapshotName,
      sourceVolumeId,
      parameters: { ...parameters },
      engine: engine.name,
      createdAt: task.createdAt.toISOString(),
      sizeBytes: task.sizeBytes,
      promised,
      owner: await thisOwner(),
      ...more,
    });
    noted = true;
  }

  async function work(): Promise<Snapshot> {
    const before = await readPromise(directory, key);
    noted = before !== undefined;
    promised ||= before?.promised ?? false;
    if (before?.inner !== undefined) {
      const whole = await engine.get(call, before.inner);
      if (whole) return underKey(engine, key, before, whole);
    } else if (before && engine.leavesHalf) await engine.discard(call, task);
    if (noted || engine.leavesHalf) await inTurn(note);
    const taken = await copies.run(
      call,
      { what: title, engine: engine.name },
      (one) => engine.take(call, task, one),
      (one) => {
        progress = one;
      },
    );
    closing = true;
    if (!promised || !engine.leavesHalf) {
      await inTurn(async () => {
        if (noted) await removePromise(directory, key);
      });
      return taken;
    }
    const inner = parseSnapshotId(taken.id)?.inner;
    await inTurn(() => note({ inner, sizeBytes: taken.sizeBytes, owner: '' }));
    return { ...taken, id: engine.idOf(key), createdAt: task.createdAt };
  }

  /** Nobody was told of it, so nobody may come again to have what is left of it removed. */
  async function forget(): Promise<void> {
    await engine.discard(call, task);
    await removePromise(directory, key);
  }

  async function failed(error: unknown): Promise<CallError> {
    const failure = asCallError(error);
    const level = controller.signal.aborted ? 'info' : 'warn';
    if (promised)
      directory.log[level]('a snapshot that was promised is not ready', { snapshot: title, error: failure });
    if (promised && !controller.signal.aborted) failures.set(name, failure);
    // Whoever comes next need not wait until this process is believed to be dead.
    if (promised) await inTurn(() => note({ owner: '' })).catch(() => {});
    else if (noted && !controller.signal.aborted) await inTurn(forget).catch(() => {});
    return failure;
  }

  const beat = setInterval(() => {
    if (noted) touchPromise(directory, key).catch(() => {});
  }, heartbeatMs).unref();
  const ended = work()
    .catch(failed)
    .finally(() => {
      clearInterval(beat);
      running.delete(name);
    });
  const job: SnapshotJob = {
    directory,
    task,
    engine,
    ended,
    active: () => ({
      title: `Taking ${title}`,
      requestId: 'background',
      startedAt,
      waitingFor: [activity.current(), progress?.text()].filter((text) => text !== undefined).join(': ') || undefined,
      callers: [],
    }),
    async promise() {
      if (closing) return false;
      if (!promised) {
        promised = true;
        await inTurn(note);
      }
      return true;
    },
    isPromised: () => promised,
    async cancel(reason) {
      controller.abort(reason);
      await ended;
    },
  };
  running.set(name, job);
  return job;
}
