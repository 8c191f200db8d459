import type { Snapshot } from '../../core/volume.ts';
import type { SnapshotEngine } from './snapshot-engines/engine.ts';
import type { SnapshotPromise } from './snapshot-promise.ts';

/** A snapshot that was promised and is not whole yet, as the orchestrator is told of it. */
export function pendingSnapshot(engine: SnapshotEngine, key: string, promise: SnapshotPromise): Snapshot {
  const { sourceVolumeId, sizeBytes, createdAt } = promise;
  return { id: engine.idOf(key), sourceVolumeId, sizeBytes, createdAt: new Date(createdAt), readyToUse: false };
}
