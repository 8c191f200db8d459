import { join } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import type { UnstageRequest } from '../core/driver.ts';
import { removeAside } from './aside-place.ts';
import type { NodePlane } from './attach-volume.ts';
import { blockFile } from './block-file.ts';
import { checkedPath, removePlace, resolvePlace } from './paths.ts';
import { takeAway } from './take-away.ts';

/** NodeUnstageVolume: unmounts the staging path and detaches the volume. Success when nothing is there. Throws FAILED_PRECONDITION while it is in use. */
export async function unstageVolume(call: CallContext, plane: NodePlane, request: UnstageRequest): Promise<void> {
  const { tools } = plane;
  const path = checkedPath(request.stagingPath, 'staging_target_path');
  const table = await tools.readTable();
  const staging = await resolvePlace(call, tools, table, path);
  if (staging === undefined) return;
  const file = join(staging, blockFile);
  await takeAway(call, plane, table, [file, staging]);
  await removeAside(file);
  await removeAside(staging);
  if ((await removePlace(file)) && (await removePlace(staging))) return;
  // The volume is safe and gone from here, which is what was asked for; a file that somebody wrote beside it is theirs.
  call.log.warn('the staging path is not empty and stays', { path });
}
