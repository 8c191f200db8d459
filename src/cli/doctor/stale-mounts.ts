/** Mounts of volumes, and of network storage at all, that are not what they were. */

import { defaultTimeLimits } from '../../backends/exec/time-limits.ts';
import { CallError } from '../../core/errors.ts';
import { whyDead } from '../../node/dead-mount.ts';
import { isWithin, type Mount } from '../../node/mount-table.ts';
import { forEach, whyOf } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('mounts');

/** Milliseconds for the server of a mount to answer, how many are asked at once, and how many at all. */
const limits = { answer: 2000, atOnce: 8, most: 64 } as const;

/** How many mounts with something wrong are told one by one. */
const mostShown = 20;

const network = /^(nfs4?|cifs|smb3|lustre|ceph|glusterfs|fuse\.(glusterfs|objectivefs|oneclient|sshfs|s3fs))$/;

const volumePlaces =
  /\/(plugins\/kubernetes\.io\/csi\/|volumes\/kubernetes\.io~csi\/|volumeDevices\/kubernetes\.io~csi\/|client\/csi\/|docker\/mnt\/)|^\/(data\/(published|staged)|local\/csi)\//;

type Looks = Pick<Inspection, 'mounts' | 'configured' | 'stateDirectory' | 'run' | 'call'>;

export async function checkStaleMounts(inspection: Looks): Promise<readonly Finding[]> {
  const { mounts } = inspection.mounts;
  const volumes = mounts.filter((mount) => isOfVolume(inspection, mount));
  const others = mounts.filter((mount) => network.test(mount.fsType) && !volumes.includes(mount));
  const all = [...volumes, ...others];
  const judged = await forEach(all.slice(0, limits.most), limits.atOnce, (mount) =>
    judge(inspection, mount, volumes.includes(mount)),
  );
  const wrong = judged.flatMap((one) => one ?? []);
  const left = all.length - limits.most;
  const counted = `${volumes.length} of volumes, ${others.length} of other network storage`;
  const shown = wrong.slice(0, mostShown);
  if (wrong.length > shown.length) {
    shown.push(finding('warning', 'more mounts', `${wrong.length - mostShown} more are dead or read-only`));
  }
  const looked = left > 0 ? `; ${left} were not looked at` : '';
  return wrong.length > 0 ? shown : [finding('ok', 'mounts', `${counted}: all alive${looked}`)];
}

/** Mounts at the places where orchestrators want volumes, and those of a connection's folders. */
function isOfVolume({ mounts, configured, stateDirectory }: Looks, mount: Mount): boolean {
  if (volumePlaces.test(mount.mountPoint) || isWithin(mount.mountPoint, `${stateDirectory}/docker/mnt`)) return true;
  return configured.connections.some(({ basePath }) => {
    const base = basePath === undefined ? undefined : mounts.covering(basePath);
    if (basePath === undefined || base?.device !== mount.device) return false;
    const inFileSystem = `${base.root}/${basePath.slice(base.mountPoint.length)}/v/`.replaceAll(/\/+/g, '/');
    return mount.root.startsWith(inFileSystem);
  });
}

async function judge({ call, run, mounts }: Looks, mount: Mount, ours: boolean): Promise<Finding | undefined> {
  const unmount = `umount -l ${mount.mountPoint}`;
  const advice = `unmount it when nobody uses it: ${unmount}${ours ? '; the orchestrator’s next call for the volume does so too' : ''}`;
  const state = ours ? 'error' : 'warning';
  try {
    const tools = {
      run,
      limits: { ...defaultTimeLimits, mount: limits.answer },
      settings: {},
      readTable: async () => mounts,
    };
    const why = await whyDead(call, tools, mount);
    if (why !== undefined) return finding(state, mount.mountPoint, `dead: ${why}`, advice);
  } catch (error) {
    const silent = error instanceof CallError && error.code === 'UNAVAILABLE' && !call.signal.aborted;
    if (silent)
      return finding(state, mount.mountPoint, error.message, `see to its server; if that is gone: ${unmount}`);
    return finding('warning', mount.mountPoint, `could not be looked at: ${whyOf(error)}`);
  }
  if (!mount.superOptions.includes('ro') || !mount.options.includes('rw')) return undefined;
  const detail = `${mount.source} (${mount.fsType}) has become read-only by itself`;
  return finding(
    state,
    mount.mountPoint,
    detail,
    'see the kernel’s log for the disk’s errors; unmount, check and mount it again',
  );
}
