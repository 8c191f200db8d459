import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import { CallError } from '../../core/errors.ts';
import { deviceNumber } from '../device-number.ts';
import type { BlockDevice } from './probe.ts';

/** What must not be disturbed. A process that was started by way of a loader has its program among its first arguments. */
const makers = /^(?:mkfs(?:\..+)?|mke2fs|mkntfs|resize2fs|e2fsck|fsck(?:\..+)?|xfs_repair|ntfsresize|ntfsfix)$/;

/**
 * Throws UNAVAILABLE while a program makes, checks or grows a file system on the device: this process has begun it before it was started anew, or
 * somebody else has. It sees the processes that /proc shows.
 */
export async function refuseWorkedOn(device: BlockDevice): Promise<void> {
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    const program = words
      .slice(0, 8)
      .map((word) => basename(word))
      .find((word) => makers.test(word));
    if (program === undefined || !(words.includes(device.path) || (await hasOpen(pid, device)))) continue;
    const doing = /^mk/.test(program) ? 'being formatted' : 'being worked on';
    throw new CallError(
      'UNAVAILABLE',
      `${device.path} is ${doing} by \`${program}\` (process ${pid}); when that has ended, the same call goes on from there`,
    );
  }
}

/** Only of what is below /dev it is asked what it is: anything else may hang. */
async function hasOpen(pid: string, device: BlockDevice): Promise<boolean> {
  for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
    const path = `/proc/${pid}/fd/${fd}`;
    const target = await readlink(path).catch(() => '');
    const found = target.startsWith('/dev/') ? await stat(path).catch(() => undefined) : undefined;
    if (found?.isBlockDevice() && deviceNumber(found.rdev) === device.number) return true;
  }
  return false;
}
