/** Whether anybody on this machine uses a block device: asked of the kernel, which alone knows it for all mount namespaces. */
import { constants } from 'node:fs';
import { open, readdir, readFile, readlink, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path/posix';
import { setTimeout } from 'node:timers/promises';
import type { CallContext } from '../core/call.ts';
import { reasonOf } from '../core/call.ts';
import { CallError, errnoOf } from '../core/errors.ts';
import { ifThere } from '../core/if-there.ts';
import { within } from '../core/within.ts';
import { deviceNode } from './device-node.ts';
import { deviceNumber } from './device-number.ts';
import { deviceHolders, deviceName } from './devices.ts';
import { partitionsOf } from './partitions.ts';
import { readOnlyDevices } from './read-only-device.ts';
import { textOf } from './sysfs.ts';
import type { NodeTools } from './tools.ts';

/** Milliseconds that opening a device may take, and that it may take until others have been opened. */
const patienceMs = 5000;
const queueMs = 30_000;

/** Pauses in milliseconds between looks at a device in use: what was just unmounted is let go within moments. */
const pauses = [50, 100, 200, 400, 800];

/** Devices are opened so many at a time: one that does not answer holds a thread, and others must go on. */
const atOnce = 2;
let opening = 0;
const waiting: (() => void)[] = [];

/**
 * Throws FAILED_PRECONDITION while the device `major:minor`, its disk or a partition of it is mounted in any mount namespace, is part of
 * another device (multipath, LVM, RAID), or is swapped to; UNAVAILABLE when it does not answer. A device that is gone is not in use. With `tools`
 * its device node is made where there is none; without, that is FAILED_PRECONDITION.
 */
export async function refuseInUse(call: CallContext, device: string, tools?: NodeTools): Promise<void> {
  const disk = await diskOf(device);
  const name = disk && (await deviceName(disk));
  if (disk === undefined || name === undefined) return;
  const path = await (tools ? deviceNode(call, tools, name, disk) : nodeThere(name, disk));
  for (const pause of [...pauses, undefined]) {
    if ((await readOnlyOnes(disk)).length === 0 && !(await isClaimed(path))) return;
    if (pause === undefined) throw await inUse(path, disk);
    await call.waitingFor(`users of ${path} to let go`, () => sleep(pause, call.signal));
  }
}

/**
 * open(2): a block device that is opened with O_EXCL, without O_CREAT, "fails with EBUSY if it is in use by the system (e.g., mounted)". The
 * kernel looks at that before it asks the device anything, so what the device fails with says that it is free.
 */
async function isClaimed(path: string): Promise<boolean> {
  const begun = Promise.withResolvers<true>();
  const opened = fewAtOnce(() => {
    begun.resolve(true);
    return openAlone(path);
  });
  // The turn of this one comes late where many are asked after at once, which says nothing about the device.
  const answer = (await within(queueMs, begun.promise)) && (await within(patienceMs, opened));
  if (answer === 'claimed' || answer === 'free') return answer === 'claimed';
  const why = answer === undefined ? 'it does not answer' : answer.why;
  const code = answer?.code ?? 'UNAVAILABLE';
  throw new CallError(code, `whether ${path} is in use cannot be told, so it stays attached: ${why}`);
}

/** With which numbers of errno(3) opening a device fails when it is gone, or does not work, and by no fault of whoever opens it. */
const ofDevice: ReadonlySet<number> = new Set([
  2, // ENOENT
  5, // EIO
  6, // ENXIO
  19, // ENODEV
  52, // EBADE: it is reserved by another machine
  61, // ENODATA: it cannot be read
  67, // ENOLINK: no path to it
  110, // ETIMEDOUT
  121, // EREMOTEIO
  123, // ENOMEDIUM
]);

type Unknown = { readonly code: 'PERMISSION_DENIED' | 'UNAVAILABLE'; readonly why: string };

async function openAlone(path: string): Promise<'free' | 'claimed' | Unknown> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_EXCL);
    await handle.close();
    return 'free';
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EBUSY') return 'claimed';
    if (ofDevice.has(-((error as NodeJS.ErrnoException).errno ?? 0))) return 'free';
    if (errno === 'EACCES' || errno === 'EPERM') return { code: 'PERMISSION_DENIED', why: 'it may not be opened' };
    return { code: 'UNAVAILABLE', why: `opening it failed with ${errno}` };
  }
}

async function fewAtOnce<T>(work: () => Promise<T>): Promise<T> {
  if (opening >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
  else opening++;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    // The place goes to the next one.
    if (next) next();
    else opening--;
  }
}

/** The whole disk that a partition is of, or the device itself. Undefined: it is gone. */
async function diskOf(device: string): Promise<string | undefined> {
  const place = await ifThere(() => realpath(`/sys/dev/block/${device}`));
  if (place === undefined) return undefined;
  const isPartition = (await textOf(`${place}/partition`)) !== undefined;
  return isPartition ? await textOf(`${dirname(place)}/dev`) : device;
}

async function nodeThere(name: string, device: string): Promise<string> {
  const path = `/dev/${name.replaceAll('!', '/')}`;
  const found = await stat(path).catch(() => undefined);
  if (found?.isBlockDevice() && deviceNumber(found.rdev) === device) return path;
  throw new CallError(
    'FAILED_PRECONDITION',
    `whether ${path} (${device}) is in use cannot be told: there is no such node`,
  );
}

async function inUse(path: string, disk: string): Promise<CallError> {
  const devices = [disk, ...(await partitionsOf(disk))];
  const built = [
    ...(await Promise.all(devices.map((one) => deviceHolders(one)))).flat(),
    ...(await readOnlyOnes(disk)),
  ];
  const holders = built.map((name) => `/dev/${name}`);
  const mounted = holders.length > 0 ? [] : await findMounted(devices);
  const by = [...new Set([...holders, ...mounted])].slice(0, 5).join(', ') || 'the kernel or another mount namespace';
  return new CallError('FAILED_PRECONDITION', `${path} is still in use by ${by}; it stays attached until that ends`);
}

/** Names of the devices that show the disk or a part of it for reading. They claim nothing, and yet somebody may read from them. */
async function readOnlyOnes(disk: string): Promise<readonly string[]> {
  const all = await readOnlyDevices();
  if (all.length === 0) return [];
  const devices = [disk, ...(await partitionsOf(disk))];
  return all.flatMap(({ of, name }) => (devices.includes(of) ? name : []));
}

/** Processes in whose mount namespace one of the devices is mounted, one for each namespace. Only for people: it sees what /proc shows. */
async function findMounted(devices: readonly string[]): Promise<readonly string[]> {
  const seen = new Set<string>();
  const found: string[] = [];
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const namespace = await readlink(`/proc/${pid}/ns/mnt`).catch(() => undefined);
    if (namespace === undefined || seen.has(namespace)) continue;
    seen.add(namespace);
    const table = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    const line = table.split('\n').find((one) => devices.includes(one.split(' ', 3)[2] ?? ''));
    if (line === undefined) continue;
    const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
    found.push(`the mount at ${line.split(' ', 5)[4]} that process ${pid} (${name}) sees`);
  }
  return found;
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {
    throw reasonOf(signal);
  });
}
