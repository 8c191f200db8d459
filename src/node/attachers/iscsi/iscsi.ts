import { realpath } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import type { CallContext } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { refuseInUse } from '../../device-in-use.ts';
import { deviceNode } from '../../device-node.ts';
import { refuseOpen } from '../../device-users.ts';
import { withLock } from '../../keyed-lock.ts';
import { awaitMultipath, multipathOf, resizeMultipath } from '../../multipath.ts';
import { diskOf, multipathId, type ScsiDisk, type ScsiUnit } from '../../scsi-disk.ts';
import { lunOfCode } from '../../scsi-lun.ts';
import type { NodeTools } from '../../tools.ts';
import type { RefuseInUse } from '../../why-used.ts';
import type { Attacher } from '../attacher.ts';
import { connect, secondDisk } from './connect.ts';
import { detachVolume } from './detach.ts';
import { disksInUse, disksOf } from './disks-in-use.ts';
import { askAgain, findDisk } from './find-disk.ts';
import { sessionsOf, targetAbove } from './session.ts';
import { type IscsiIdentity, type IscsiVolume, identityOf, parseIdentity, volumeOf } from './volume.ts';

/** Volumes that are attached and perhaps not mounted yet, by target: for the process, whose planes share its sessions. */
const wanted = new Map<string, Set<string>>();

/** iSCSI by open-iscsi: `portal`, `portals`, `iqn`, `lun` and `interface` of the volume context, and the secrets `node-db.*`. */
export const iscsi = (tools: NodeTools): Attacher =>
  createIscsi(tools, { refuseInUse, refuseOpen: (call, device) => refuseOpen(call, device, tools), deviceNode });

/** What looks at devices themselves. Tests have none. */
interface Devices {
  readonly refuseInUse: RefuseInUse;
  readonly refuseOpen: RefuseInUse;
  readonly deviceNode: typeof deviceNode;
}

export function createIscsi(tools: NodeTools, devices: Devices): Attacher {
  const { sysfs = '/sys' } = tools;
  return {
    reachedByMany: true,
    identityOf: ({ context }) => identityOf(volumeOf(context)),

    async attach(call, { context }) {
      const volume = volumeOf(context);
      return await withTarget(call, volume, async () => {
        want(volume);
        return { type: 'device', path: await attachVolume(call, tools, volume, devices) };
      });
    },

    identify: (device) => identify(sysfs, device),

    async detach(call, identity, others = async () => []) {
      const volume = parseIdentity(identity);
      await withTarget(call, volume, async () => {
        const { iqn, lun } = identityOf(volume);
        const isOther = (one: Readonly<Record<string, string>>) =>
          one.iqn?.toLowerCase() === iqn && one.lun !== undefined && one.lun !== lun;
        const isShared = [...(wanted.get(iqn) ?? [])].some((one) => one !== lun) || (await others()).some(isOther);
        await detachVolume(call, tools, volume, isShared, devices.refuseInUse, refuseUsed(devices));
        forget(volume);
      });
    },

    async rescan(call, device) {
      const identity = await identify(sysfs, device);
      if (identity) await withTarget(call, identity, () => rescan(call, tools, device));
    },
  };
}

/** Also for what was not claimed by whoever uses it. */
function refuseUsed({ refuseInUse, refuseOpen }: Devices): RefuseInUse {
  return async (call, device) => {
    await refuseInUse(call, device);
    await refuseOpen(call, device);
  };
}

/** One call at a time works on the sessions with a target. */
function withTarget<T>(call: CallContext, { iqn }: { readonly iqn: string }, work: () => Promise<T>): Promise<T> {
  return withLock(`iscsi ${iqn.toLowerCase()}`, call.signal, work);
}

function want(volume: IscsiVolume): void {
  const { iqn, lun } = identityOf(volume);
  wanted.set(iqn, (wanted.get(iqn) ?? new Set()).add(lun));
}

function forget(volume: Pick<IscsiVolume, 'iqn' | 'lun'>): void {
  const { iqn, lun } = identityOf(volume);
  wanted.get(iqn)?.delete(lun);
  if (wanted.get(iqn)?.size === 0) wanted.delete(iqn);
}

/** Gives the path of the device. */
async function attachVolume(
  call: CallContext,
  tools: NodeTools,
  volume: IscsiVolume,
  devices: Devices,
): Promise<string> {
  const { sysfs = '/sys' } = tools;
  const { sessions, multipath } = await connect(call, tools, volume, devices.refuseInUse);
  const results = await Promise.allSettled(
    sessions.map((session) => findDisk(call, tools, session, volume.lun, refuseUsed(devices))),
  );
  const disks = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failure = results.find((result) => result.status === 'rejected');
  const [first] = disks;
  if (first === undefined) throw failure?.reason;
  if (failure) call.log.warn('a path to a volume does not work, another one does', { why: String(failure.reason) });
  requireSame(volume, disks);

  const names = disks.map((disk) => disk.name);
  const map = multipath
    ? await awaitMultipath(call, tools, names, multipathId(first.wwid ?? ''))
    : await multipathOf(sysfs, names);
  const used = await usedDisk(call, tools, volume, disks, devices.refuseInUse);
  if (map && !used) return await devices.deviceNode(call, tools, map.device, map.number);
  const { name, number } = used ?? first;
  return await devices.deviceNode(call, tools, name, number);
}

function requireSame({ iqn, lun }: IscsiVolume, disks: readonly ScsiDisk[]): void {
  const wwids = new Set(disks.flatMap((disk) => disk.wwid ?? []));
  if (wwids.size < 2) return;
  throw new CallError(
    'FAILED_PRECONDITION',
    `LUN ${lun} of ${iqn} is another disk on each path (${[...wwids].join(', ')}): are there two targets of that name?`,
  );
}

/**
 * Of all disks that are the volume, the one that is in use: it must not be mounted as two. Undefined: none is. Throws UNAVAILABLE when it is none of
 * those that work.
 */
async function usedDisk(
  call: CallContext,
  tools: NodeTools,
  volume: IscsiVolume,
  disks: readonly ScsiDisk[],
  refuseInUse: RefuseInUse,
): Promise<ScsiDisk | undefined> {
  const { sysfs = '/sys' } = tools;
  const sessions = await sessionsOf(sysfs, volume.iqn);
  const works = (number: string) => disks.some((disk) => disk.number === number);
  const all = await disksOf(sessions, volume.lun);
  if (all.length < 2 && all.every(({ disk }) => works(disk.number))) return undefined;
  const used = await disksInUse(call, tools, sessions, volume.lun, refuseInUse);
  const [unusable] = used.filter(({ disk }) => !works(disk.number));
  if (unusable) throw secondDisk(volume, unusable);
  return used[0]?.disk;
}

/** What a device is: the disk itself, a partition of it, or the multipath map above it. Whatever else is made of disks is not theirs. */
async function identify(sysfs: string, device: string): Promise<IscsiIdentity | undefined> {
  const disk = await directoryOf(sysfs, device);
  if (disk === undefined) return undefined;
  const { lun, directory } = unitOf(disk) ?? {};
  if (lun === undefined || directory === undefined) return undefined;
  const iqn = await targetAbove(sysfs, `${directory}/`);
  return iqn === undefined ? undefined : identityOf({ iqn, lun });
}

/** The directory of a disk in sysfs, `…/session1/target3:0:0/3:0:0:0/block/sda`. */
async function directoryOf(sysfs: string, device: string): Promise<string | undefined> {
  const directory = await realpath(`${sysfs}/dev/block/${device}`).catch(() => undefined);
  if (directory === undefined) return undefined;
  const map = await multipathOf(
    sysfs,
    [basename(directory)].filter((name) => name.startsWith('dm-')),
  );
  const [path] = map?.paths ?? [];
  if (path === undefined) return directory;
  return await realpath(`${sysfs}/class/block/${path}`).catch(() => undefined);
}

function unitOf(disk: string): ScsiUnit | undefined {
  // That of a partition lies within that of its disk.
  const directory = /^(.*\/\d+:\d+:\d+:\d+)\/block\//.exec(`${disk}/`)?.[1];
  if (directory === undefined) return undefined;
  const address = basename(directory);
  return { directory, address, lun: lunOfCode(Number(address.split(':')[3])) };
}

async function rescan(call: CallContext, tools: NodeTools, device: string): Promise<void> {
  const { sysfs = '/sys' } = tools;
  const directory = await realpath(`${sysfs}/dev/block/${device}`);
  const map = await multipathOf(sysfs, [basename(directory)]);
  const paths = map
    ? await Promise.all(map.paths.map((name) => realpath(`${sysfs}/class/block/${name}`)))
    : [directory];
  const units = paths.flatMap((path) => unitOf(path) ?? []);
  const results = await Promise.allSettled(units.map((unit) => newSize(call, tools, unit)));
  const sizes = results.flatMap((result) => (result.status === 'fulfilled' ? (result.value ?? []) : []));
  const failure = results.find((result) => result.status === 'rejected');
  // Paths that are down are asked again when multipathd brings them back.
  if (failure && sizes.length === 0) throw failure.reason;
  if (map && sizes.length > 0) await resizeMultipath(call, tools, map, Math.min(...sizes));
}

/** Bytes of a disk after the kernel has asked it; undefined: it is gone. */
async function newSize(call: CallContext, tools: NodeTools, unit: ScsiUnit): Promise<number | undefined> {
  const before = await diskOf(unit);
  if (!before || !(await askAgain(call, tools, before))) return undefined;
  return (await diskOf(unit))?.bytes || undefined;
}
