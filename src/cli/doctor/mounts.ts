/** Mounts: whether new ones are seen where they have to be, and whether old ones are still alive. */
import type { Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';
import { checkLeftovers } from './leftovers.ts';
import { checkPropagation } from './propagation.ts';
import { checkStagedVolumes } from './staged-volumes.ts';
import { checkStaleMounts } from './stale-mounts.ts';

export async function checkMounts(inspection: Inspection): Promise<readonly Finding[]> {
  const found = await Promise.all([
    checkPropagation(inspection),
    checkStaleMounts(inspection),
    checkStagedVolumes(inspection),
    checkLeftovers(inspection),
  ]);
  return found.flat();
}
