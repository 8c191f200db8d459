/** Growing a mounted file system to the size of its device. */
import type { CallContext } from '../../core/call.ts';
import { deviceSize } from '../devices.ts';
import type { Mount } from '../mount-table.ts';
import type { NodeTools } from '../tools.ts';
import { fileSystemNamed } from './index.ts';
import { runStep } from './prepare.ts';
import { type BlockDevice, readDevice } from './probe.ts';

/** Less than this at a device's end is what file systems leave unused anyway. */
const slack = 4 * 2 ** 20;

/** Grows if the device is larger than what is on it; cheap when it is not. Does nothing for read-only mounts and what cannot grow. */
export async function growIfSmaller(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  mount: Mount,
): Promise<void> {
  const superblock = fileSystemNamed(mount.fsType)?.superblock;
  if (!superblock || isReadOnly(mount)) return;
  const size = superblock.size(await readDevice(call, tools, device, superblock.offset, superblock.length));
  const room = await deviceSize(device.number);
  if (size !== undefined && room !== undefined && room - size >= slack) await grow(call, tools, device, mount);
}

/** Grows the file system; success when it has its device's size already. False when this file system cannot grow while mounted. */
export async function grow(call: CallContext, tools: NodeTools, device: BlockDevice, mount: Mount): Promise<boolean> {
  const step = fileSystemNamed(mount.fsType)?.grow?.(device.path, mount.mountPoint);
  if (!step) return false;
  call.log.info('growing a file system to the size of its device', { device: device.path, fsType: mount.fsType });
  await runStep(call, tools, step);
  return true;
}

export function isReadOnly(mount: Mount): boolean {
  return mount.options.includes('ro') || mount.superOptions.includes('ro');
}
