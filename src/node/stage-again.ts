import { CommandFailed } from '../backends/exec/command-failed.ts';
import type { CallContext } from '../core/call.ts';
import type { StageRequest } from '../core/driver.ts';
import { withLock } from './keyed-lock.ts';
import type { Mount } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { familyOf } from './share-source.ts';
import { stageVolume } from './stage.ts';
import { detachMount } from './unmount.ts';

/** Whether a mount of a staged volume that turns out to be dead can be made anew by a publication, which has all that takes. */
export function canStageAgain(call: CallContext, mount: Mount): boolean {
  const family = familyOf(mount.fsType);
  // SMB wants an account, which not every orchestrator gives to publications.
  return family !== undefined && (family !== 'smb' || Object.keys(call.secrets).length > 0);
}

/** Whether the server said that it does not know any more what is mounted. */
export function saysStale(error: unknown): boolean {
  return error instanceof CommandFailed && /stale file handle/i.test(error.stderr);
}

/** Puts a new mount in the place of a dead one (`mount`) at the staging path. */
export async function stageAgain(
  call: CallContext,
  plane: NodePlane,
  request: StageRequest,
  mount: Mount,
): Promise<void> {
  const { tools } = plane;
  // Several publications of one volume find out about it together.
  await withLock(`stage again ${mount.mountPoint}`, call.signal, async () => {
    const now = (await tools.readTable()).at(mount.mountPoint);
    if (now?.id === mount.id && now.device === mount.device) {
      call.log.warn('detaching a dead mount', { path: mount.mountPoint, source: mount.source });
      await detachMount(call, tools, mount);
    }
    await stageVolume(call, plane, request);
  });
}
