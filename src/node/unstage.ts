import { join } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import type { UnstageRequest } from '../core/driver.ts';
import { removeAside } from './aside-place.ts';
import { blockFile } from './block-file.ts';
import type { NodePlane } from './node-plane.ts';
import { checkedPath, removePlace, resolvePlace } from './paths.ts';
import { takeAway } from './take-away.ts';

/**
 * NodeUnstageVolume: unmounts the staging path and detaches the volume that was staged there, as its record tells. Success when nothing is there.
 * Throws FAILED_PRECONDITION while it is in use, and while a volume that is to be detached is still mounted somewhere.
 */
export async function unstageVolume(call: CallContext, plane: NodePlane, request: UnstageRequest): Promise<void> {
  const { tools } = plane;
  const path = checkedPath(request.stagingPath, 'staging_target_path');
  const table = await tools.readTable();
  const staging = await resolvePlace(call, tools, table, path);
  const places = staging === undefined ? [] : [join(staging, blockFile), staging];
  const clear = async () => {
    for (const place of places) await removeAside(place);
    for (const place of places) {
      if (await removePlace(place)) continue;
      // The volume is safe and gone from here, which is what was asked for; a file that somebody wrote beside it is theirs.
      return call.log.warn('the staging path is not empty and stays', { path });
    }
  };
  await takeAway(call, plane, table, { path, places, clear, unrecorded: true });
}
