/** From the id of a snapshot to what it is and where. */
import type { Snapshot } from '../../core/volume.ts';
import type { Call, Directory } from './directory.ts';
import { pendingSnapshot } from './pending-snapshot.ts';
import type { SnapshotEngine } from './snapshot-engines/engine.ts';
import type { Engines } from './snapshot-engines/engines.ts';
import { isRepositoryId, parseSnapshotId } from './snapshot-id.ts';
import type { SnapshotPromise } from './snapshot-promise.ts';
import { readPromise } from './snapshot-promise.ts';

export interface SnapshotPlace {
  readonly engine: SnapshotEngine;
  /** Undefined for the id that a repository gave. */
  readonly key: string | undefined;
  readonly promise: SnapshotPromise | undefined;
  /** What the engine calls it; undefined when it is not there, or not whole. */
  readonly inner: string | undefined;
}

/** Undefined for an id that no snapshot can have. */
export async function locateSnapshot(
  directory: Directory,
  engines: Engines,
  call: Call,
  id: string,
): Promise<SnapshotPlace | undefined> {
  const parsed = parseSnapshotId(id);
  if (!parsed) return undefined;
  const engine = engines[parsed.engine];
  const { inner: text } = parsed;
  if (engine.leavesHalf && isRepositoryId(text)) return { engine, key: undefined, promise: undefined, inner: text };
  const promise = await readPromise(directory, text);
  if (!engine.leavesHalf) return { engine, key: text, promise, inner: text };
  return { engine, key: text, promise, inner: promise ? promise.inner : await innerOf(engine, call, text) };
}

/** Where the note of it was lost, its volume and name lead to it. */
async function innerOf(engine: SnapshotEngine, call: Call, key: string): Promise<string | undefined> {
  return (await engine.list(call, undefined)).find((one) => one.key === key)?.inner;
}

/** The snapshot there, whole or promised. */
export async function snapshotAt(call: Call, place: SnapshotPlace): Promise<Snapshot | undefined> {
  const { engine, key, promise, inner } = place;
  const whole = inner === undefined ? undefined : await engine.get(call, inner);
  if (whole) return key === undefined ? whole : underKey(engine, key, promise, whole);
  const pending = promise?.promised && promise.inner === undefined && key !== undefined;
  return pending ? pendingSnapshot(engine, key, promise) : undefined;
}

/** A whole snapshot under the id and with the facts that it was promised with. */
export function underKey(
  engine: SnapshotEngine,
  key: string,
  promise: SnapshotPromise | undefined,
  snapshot: Snapshot,
): Snapshot {
  if (!engine.leavesHalf) return snapshot;
  const { createdAt, sizeBytes } = snapshot;
  return {
    ...snapshot,
    id: engine.idOf(key),
    createdAt: promise ? new Date(promise.createdAt) : createdAt,
    sizeBytes: promise?.sizeBytes || sizeBytes,
  };
}
