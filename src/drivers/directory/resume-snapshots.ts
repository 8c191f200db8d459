import type { Copies } from './copies.ts';
import type { Directory } from './directory.ts';
import type { Engines } from './snapshot-engines/engines.ts';
import { hasFailed, jobOf, startJob } from './snapshot-jobs.ts';
import { isElsewhere, listPromises } from './snapshot-promise.ts';

/** Goes on with the snapshots that were promised by a process that is no more. One that failed waits until somebody was told. */
export async function resumeSnapshots(directory: Directory, engines: Engines, copies: Copies): Promise<void> {
  for (const [key, promise] of await listPromises(directory)) {
    const { name, sourceVolumeId, parameters, sizeBytes, promised, inner } = promise;
    if (!promised || inner !== undefined || hasFailed(directory, key)) continue;
    if (await isElsewhere(directory, key, promise)) continue;
    // A call may have begun it meanwhile.
    if (jobOf(directory, key)) continue;
    directory.log.info('a snapshot that was promised is taken now', { snapshot: name, volume: sourceVolumeId });
    const task = { spec: { name, sourceVolumeId, parameters }, key, createdAt: new Date(promise.createdAt), sizeBytes };
    startJob({ directory, copies, engine: engines[promise.engine], task });
  }
}
