/** Block devices as sysfs shows them. Nothing here touches the disk. */
import { access, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import { CallError } from '../core/errors.ts';
import { deviceNumber } from './device-number.ts';
import type { Mount } from './mount-table.ts';

const sysfs = '/sys/dev/block';

/** Bytes of the device `major:minor`; undefined when there is no such device. Throws FAILED_PRECONDITION without sysfs. */
export async function deviceSize(device: string): Promise<number | undefined> {
  const sectors = await readFile(`${sysfs}/${device}/size`, 'utf8').catch(() => undefined);
  // sysfs counts in units of 512 bytes whatever the device's own sector size is.
  if (sectors !== undefined) return Number(sectors) * 512;
  if (await exists(sysfs)) return undefined;
  throw new CallError('FAILED_PRECONDITION', `block devices cannot be used without ${sysfs}: mount sysfs at /sys`);
}

/** True when the device `major:minor` was removed. False also when that cannot be known. */
export async function isDeviceGone(device: string): Promise<boolean> {
  return !(await exists(`${sysfs}/${device}`)) && (await exists(sysfs));
}

/** Whether nothing can be written to the device `major:minor`. False also when that cannot be known. */
export async function isWriteProtected(device: string): Promise<boolean> {
  return (await readFile(`${sysfs}/${device}/ro`, 'utf8').catch(() => '')).trim() === '1';
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}

/** Names of the devices built upon this one, such as a multipath or LVM device. `root`: where sysfs is mounted. */
export async function deviceHolders(device: string, root = '/sys'): Promise<readonly string[]> {
  const directory = await realpath(`${root}/dev/block/${device}`).catch(() => undefined);
  return directory === undefined ? [] : await readdir(`${directory}/holders`).catch(() => []);
}

/** `major:minor` of the block device below a mounted file system; undefined when there is none. */
export async function deviceOfMount(mount: Mount): Promise<string | undefined> {
  if (!mount.device.startsWith('0:')) return mount.device;
  // btrfs has an anonymous number, but names its device.
  if (mount.fsType !== 'btrfs') return undefined;
  const found = await stat(mount.source).catch(() => undefined);
  return found?.isBlockDevice() ? deviceNumber(found.rdev) : undefined;
}

/** The kernel's name of a device: `sda`, `dm-0`. Undefined: it is gone. */
export async function deviceName(device: string): Promise<string | undefined> {
  const directory = await realpath(`${sysfs}/${device}`).catch(() => undefined);
  return directory && basename(directory);
}
