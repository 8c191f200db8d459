import type { CallContext } from '../core/call.ts';
import type { NodeExpanded, NodeExpandRequest } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import { formatSize } from '../core/sizes.ts';
import { deviceOfMount, deviceSize } from './devices.ts';
import { grow, isReadOnly } from './file-systems/grow.ts';
import { findVolume } from './find-volume.ts';
import type { Mount, MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { followSize, readOnlyDevices } from './read-only-device.ts';

/**
 * NodeExpandVolume: grows the file system of a volume to the size of its device. Directories and shares have nothing to grow here. Throws
 * NOT_FOUND when no volume is mounted at the path, FAILED_PRECONDITION while this node does not see the device's new size, and for a file system
 * that does not grow while it is mounted: orchestrators do not keep a volume from being used for that, and tell it to the user.
 */
export async function expandVolume(
  call: CallContext,
  plane: NodePlane,
  request: NodeExpandRequest,
): Promise<NodeExpanded> {
  const { tools } = plane;
  const { table, mount, device: shown } = await findVolume(call, tools, request.volumePath);
  const seen = shown ?? (isWholeDevice(table, mount) ? await deviceOfMount(mount) : undefined);
  if (seen === undefined) return {};
  const readOnly = await readOnlyDevices();
  const device = readOnly.find(({ number }) => number === shown)?.of ?? seen;

  for (const attacher of Object.values(plane.attachers)) {
    await attacher.rescan?.(call, device, request.capacity.requiredBytes);
  }
  const size = await deviceSize(device);
  if (size === undefined) throw new CallError('FAILED_PRECONDITION', `the device of ${request.volumePath} is gone`);
  const { requiredBytes } = request.capacity;
  if (requiredBytes !== undefined && size < requiredBytes) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${mount.source} has ${formatSize(size)} on this node, not ${formatSize(requiredBytes)}: the new size is not seen yet`,
    );
  }
  for (const one of readOnly) if (one.of === device) await followSize(call, tools, one);
  if (shown !== undefined) return { capacityBytes: size };
  const grown = await growMounted(call, plane, { path: mount.source, number: device }, mount);
  return grown ? { capacityBytes: size } : {};
}

async function growMounted(
  call: CallContext,
  plane: NodePlane,
  device: { readonly path: string; readonly number: string },
  mount: Mount,
): Promise<boolean> {
  if (isReadOnly(mount)) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${mount.mountPoint} is read-only; a file system grows only while it is writable`,
    );
  }
  return await grow(call, plane.tools, device, mount);
}

/** False for a directory of a larger file system (hostpath), and for the node's own root: their devices are none of the volume's business. */
function isWholeDevice(table: MountTable, mount: Mount): boolean {
  return mount.root === '/' && table.at('/')?.device !== mount.device;
}
