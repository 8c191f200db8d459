import type { CallContext } from '../core/call.ts';
import type { UnpublishRequest } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import { removeAside } from './aside-place.ts';
import type { NodePlane } from './node-plane.ts';
import { checkedPath, removePlace, resolvePlace } from './paths.ts';
import { takeAway } from './take-away.ts';

/**
 * NodeUnpublishVolume: unmounts the target path and removes the directory or file, and detaches a volume that was published without having
 * been staged. Success when nothing is there. Throws FAILED_PRECONDITION
 * while it is in use, or when something that is no mount has files at the target; those are never removed.
 */
export async function unpublishVolume(call: CallContext, plane: NodePlane, request: UnpublishRequest): Promise<void> {
  const { tools } = plane;
  const path = checkedPath(request.targetPath, 'target_path');
  const table = await tools.readTable();
  const target = await resolvePlace(call, tools, table, path);
  const clear = async () => {
    if (target === undefined) return;
    await removeAside(target);
    if (await removePlace(target)) return;
    throw new CallError(
      'FAILED_PRECONDITION',
      `${path} is not mounted, but not empty either: look at it and remove it`,
    );
  };
  // A volume that was staged is detached when it is unstaged. One that was not has a record of this path.
  await takeAway(call, plane, table, { path, places: target === undefined ? [] : [target], clear });
}
