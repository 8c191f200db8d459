import type { CallContext } from '../core/call.ts';
import { asidePlace } from './aside-place.ts';
import type { NodePlane } from './attach-volume.ts';
import { deviceOfMount } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { inspectPath } from './paths.ts';
import { unmountAll } from './unmount.ts';
import { showsSame } from './wanted.ts';

/**
 * Unmounts everything at the places and aside of them, and lets the attachers detach the volume if it is mounted nowhere else on this node. With
 * `evenIfGone` also if it was not mounted any more. Throws FAILED_PRECONDITION while it is in use.
 */
export async function takeAway(
  call: CallContext,
  plane: NodePlane,
  volumeId: string,
  table: MountTable,
  places: readonly string[],
  evenIfGone = false,
): Promise<void> {
  const { tools } = plane;
  const mounts = places.flatMap((place) => [...table.stackAt(place), ...table.stackAt(asidePlace(place))]);
  const detachers = Object.values(plane.attachers).flatMap((attacher) => attacher.detach?.bind(attacher) ?? []);
  const top = mounts[0];
  const device = top && detachers.length > 0 ? await deviceShown(call, plane, table, top) : undefined;

  let after = table;
  for (const place of places.flatMap((one) => [asidePlace(one), one])) {
    after = await unmountAll(call, tools, after, place);
  }

  const stillUsed = after.mounts.some(
    (left) => left.device === device || mounts.some((mount) => showsSame(left, mount)),
  );
  if (stillUsed || (mounts.length === 0 && !evenIfGone)) return;
  for (const detach of detachers) await detach(call, { volumeId, mounts, device });
}

/** The block device that a mount is of, or shows as a device node. */
async function deviceShown(
  call: CallContext,
  plane: NodePlane,
  table: MountTable,
  mount: Mount,
): Promise<string | undefined> {
  if (mayHang(mount)) return undefined;
  const found = await inspectPath(call, plane.tools, table, mount.mountPoint);
  return found.is === 'device' ? found.device : await deviceOfMount(mount);
}
