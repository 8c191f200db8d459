import type { CallContext } from '../core/call.ts';
import { asidePlace } from './aside-place.ts';
import type { NodePlane } from './attach-volume.ts';
import type { Attacher, Identity } from './attachers/attacher.ts';
import { deviceOfMount } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { inspectPath } from './paths.ts';
import { unmountAll } from './unmount.ts';
import { showsSame } from './wanted.ts';

/**
 * Unmounts everything at the places and aside of them, and lets its attacher detach the volume if it is mounted nowhere else on this node. Throws
 * FAILED_PRECONDITION while it is in use.
 */
export async function takeAway(
  call: CallContext,
  plane: NodePlane,
  table: MountTable,
  places: readonly string[],
): Promise<void> {
  const { tools } = plane;
  const mounts = places.flatMap((place) => [...table.stackAt(place), ...table.stackAt(asidePlace(place))]);
  const top = mounts[0];
  const device = top && (await deviceShown(call, plane, table, top));
  const attached = device === undefined ? [] : await identify(plane, device);

  let after = table;
  for (const place of places.flatMap((one) => [asidePlace(one), one])) {
    after = await unmountAll(call, tools, after, place);
  }

  const stillUsed = after.mounts.some(
    (left) => left.device === device || mounts.some((mount) => showsSame(left, mount)),
  );
  if (stillUsed) return;
  for (const { attacher, identity } of attached) await attacher.detach?.(call, identity);
}

/** Which attachers know the device as theirs, and as what. */
async function identify(plane: NodePlane, device: string) {
  const found: { readonly attacher: Attacher; readonly identity: Identity }[] = [];
  for (const attacher of Object.values(plane.attachers)) {
    const identity = await attacher.identify?.(device);
    if (identity) found.push({ attacher, identity });
  }
  return found;
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
