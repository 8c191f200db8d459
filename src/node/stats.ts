import { statfs } from 'node:fs/promises';
import type { CallContext } from '../core/call.ts';
import type { StatsRequest } from '../core/driver.ts';
import { asCallError } from '../core/errors.ts';
import type { Condition, Usage, VolumeStats } from '../core/volume.ts';
import { whyDead } from './dead-mount.ts';
import { deviceSize, isDeviceGone } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import { findVolume } from './find-volume.ts';
import type { Mount } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { readOnlyDeviceAt } from './read-only-device.ts';
import { remoteUsage } from './remote-usage.ts';
import type { NodeTools } from './tools.ts';

/**
 * NodeGetVolumeStats: bytes and inodes of a mounted volume, the size of a block volume, and its condition. A volume that is out of reach has
 * an abnormal condition and no usage. Throws NOT_FOUND when no volume is mounted at the path.
 */
export async function volumeStats(call: CallContext, plane: NodePlane, request: StatsRequest): Promise<VolumeStats> {
  const { tools } = plane;
  const found = await findVolume(call, tools, request.volumePath);
  if (found.device !== undefined) {
    const total = await deviceSize(found.device);
    const below = (await readOnlyDeviceAt(found.device))?.of;
    if (!total || (below !== undefined && (await isDeviceGone(below))))
      return { usage: [], condition: abnormal('its block device is gone or has no medium') };
    return { usage: [{ unit: 'BYTES', total }], condition: normal };
  }
  // Of a server, the usage is asked below, and tells the same.
  const dead = mayHang(found.mount) ? undefined : await whyDead(call, tools, found.mount);
  if (dead) return { usage: [], condition: abnormal(dead) };
  try {
    return { usage: await usageOf(call, tools, found.mount), condition: conditionOf(found.mount) };
  } catch (error) {
    if (call.signal.aborted) throw error;
    return { usage: [], condition: abnormal(asCallError(error).message) };
  }
}

const normal: Condition = { abnormal: false, message: 'the volume is mounted and answers' };

function abnormal(message: string): Condition {
  return { abnormal: true, message };
}

/** The kernel makes a file system read-only, but not its mounts, when it finds it damaged. */
function conditionOf(mount: Mount): Condition {
  const turned = mount.superOptions.includes('ro') && !mount.options.includes('ro');
  return turned ? abnormal('its file system was made read-only, as the kernel does after errors') : normal;
}

async function usageOf(call: CallContext, tools: NodeTools, mount: Mount): Promise<readonly Usage[]> {
  const found = mayHang(mount) ? await remoteUsage(call, tools, mount) : await statfs(mount.mountPoint);
  const { bsize, blocks, bfree, bavail, files, ffree } = found;
  const bytes: Usage = {
    unit: 'BYTES',
    total: blocks * bsize,
    used: Math.max(0, blocks - bfree) * bsize,
    available: bavail * bsize,
  };
  // Some file systems do not count inodes.
  if (files === 0) return [bytes];
  return [bytes, { unit: 'INODES', total: files, used: Math.max(0, files - ffree), available: ffree }];
}
