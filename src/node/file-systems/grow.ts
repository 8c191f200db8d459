/** Growing a mounted file system to the size of its device. */
import { CommandFailed } from '../../backends/exec/command-failed.ts';
import { type CallContext, throwIfOver } from '../../core/call.ts';
import { asCallError, CallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import { deviceSize } from '../devices.ts';
import type { Mount } from '../mount-table.ts';
import type { NodeTools } from '../tools.ts';
import type { FileSystem } from './file-system.ts';
import { fileSystemNamed } from './index.ts';
import { type BlockDevice, readDevice } from './probe.ts';
import { runStep } from './step.ts';

/** Less than this at a device's end is what file systems leave unused anyway. */
const slack = 4 * 2 ** 20;

/**
 * Grows if the device is larger than what is on it; cheap when it is not. Does nothing for read-only mounts and what cannot grow. A volume that
 * cannot be grown is no worse than before: that is logged, and does not keep it from being used.
 */
export async function growIfSmaller(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  mount: Mount,
): Promise<void> {
  try {
    await growToDevice(call, tools, device, mount);
  } catch (error) {
    throwIfOver(call.signal);
    const why = asCallError(error).message;
    call.log.warn('a file system is smaller than its device and could not be grown', { device: device.path, why });
  }
}

async function growToDevice(call: CallContext, tools: NodeTools, device: BlockDevice, mount: Mount): Promise<void> {
  const fileSystem = fileSystemNamed(mount.fsType);
  if (!fileSystem?.grow || isReadOnly(mount)) return;
  if ((await missingBytes(call, tools, device, fileSystem)) > 0) await grow(call, tools, device, mount);
}

/** Bytes at the end of the device that the file system could use and does not; zero when that is not known. */
export async function missingBytes(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  { superblock }: FileSystem,
): Promise<number> {
  if (!superblock) return 0;
  const size = superblock.size(await readDevice(call, tools, device, superblock.offset, superblock.length));
  const room = await deviceSize(device.number);
  return size !== undefined && room !== undefined && room - size >= slack ? room - size : 0;
}

/**
 * Grows the file system; success when it has its device's size already. False when nothing is known of this file system. Throws FAILED_PRECONDITION
 * for one that does not grow while it is mounted.
 */
export async function grow(call: CallContext, tools: NodeTools, device: BlockDevice, mount: Mount): Promise<boolean> {
  const fileSystem = fileSystemNamed(mount.fsType);
  if (!fileSystem) return false;
  const step = fileSystem.grow?.(device.path, mount.mountPoint);
  if (!step) {
    const missing = await missingBytes(call, tools, device, fileSystem);
    if (missing > 0) throw cannotGrow(fileSystem, mount, missing);
    return true;
  }
  call.log.info('growing a file system to the size of its device', { device: device.path, fsType: mount.fsType });
  for (let attempt = 1; ; attempt++) {
    try {
      await runStep(call, tools, step);
      return true;
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      // resize2fs reads the superblock while the kernel may just be writing it.
      if (/checksum does not match/i.test(error.stderr) && attempt < 5) continue;
      throw /permission denied/i.test(error.stderr) ? lacksPrivilege(error) : error;
    }
  }
}

function cannotGrow(fileSystem: FileSystem, { fsType, mountPoint }: Mount, missing: number): CallError {
  const short = `${mountPoint} is ${formatSize(missing)} smaller than its device`;
  const why = fileSystem.growUnmounted
    ? `${fsType} grows only while it is not mounted: unpublish and unstage the volume everywhere, and it is grown when it is staged next`
    : `${fsType} cannot grow: copy the files to a new volume of that size`;
  return new CallError('FAILED_PRECONDITION', `${short}, and ${why}`);
}

function lacksPrivilege(error: CommandFailed): CallError {
  const message = `${error.message}; growing a mounted ext file system needs the capability CAP_SYS_RESOURCE`;
  return new CallError('FAILED_PRECONDITION', message, { cause: error });
}

export function isReadOnly(mount: Mount): boolean {
  return mount.options.includes('ro') || mount.superOptions.includes('ro');
}
