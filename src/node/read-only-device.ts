/**
 * Block devices that show another one and cannot be written by anybody: read-only loop devices. A device node cannot have that, for the kernel
 * lets root write to a device whose node is on a read-only mount. What such a device shows, and for which place it was made, is in the name that the
 * kernel keeps of what is below it: so it is known again by any process, whatever else was forgotten.
 */
import { access, link, readdir, readFile, realpath, unlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path/posix';
import { CommandFailed } from '../backends/exec/command-failed.ts';
import { type CallContext, throwIfOver } from '../core/call.ts';
import { CallError, errnoOf } from '../core/errors.ts';
import { deviceNode } from './device-node.ts';
import { deviceName, deviceSize } from './devices.ts';
import type { Mount } from './mount-table.ts';
import { namesIn, textOf } from './sysfs.ts';
import type { NodeTools } from './tools.ts';

export interface ReadOnlyDevice {
  /** The kernel's name: `loop3`. */
  readonly name: string;
  /** `major:minor` of its own. */
  readonly number: string;
  /** `major:minor` of the device that it shows. */
  readonly of: string;
  /** For which place it was made: placeHash of the target path. */
  readonly place: string;
}

const prefix = '.switchboard-read-only-';
const named = /\/\.switchboard-read-only-(\d+:\d+)-([0-9a-f]{32})(?: \(deleted\))?$/;

/** The read-only device with this number; undefined when the device is something else. */
export async function readOnlyDeviceAt(number: string): Promise<ReadOnlyDevice | undefined> {
  const below = await textOf(`/sys/dev/block/${number}/loop/backing_file`);
  const [, of, place] = named.exec(below ?? '') ?? [];
  const name = of && (await deviceName(number));
  return of && place && name ? { name, number, of, place } : undefined;
}

/** All of this machine. */
export async function readOnlyDevices(): Promise<readonly ReadOnlyDevice[]> {
  const names = (await namesIn('/sys/block')).filter((name) => name.startsWith('loop'));
  const numbers = await Promise.all(names.map((name) => textOf(`/sys/block/${name}/dev`)));
  const found = await Promise.all(numbers.map((number) => number && readOnlyDeviceAt(number)));
  return found.filter((one) => typeof one === 'object');
}

/** Whether a mount shows the node of the device, in whatever /dev that is. */
export function showsNodeOf({ name }: ReadOnlyDevice, mount: Mount): boolean {
  return mount.device.startsWith('0:') && basename(mount.root) === name;
}

/**
 * Makes the device `of` (`major:minor`) readable, and only that, by another device, for one place. Throws FAILED_PRECONDITION where no such device
 * can be made: no loop devices in the kernel, or none seen here.
 */
export async function makeReadOnlyDevice(
  call: CallContext,
  tools: NodeTools,
  of: string,
  place: string,
): Promise<ReadOnlyDevice> {
  const name = await deviceName(of);
  if (name === undefined) throw new CallError('FAILED_PRECONDITION', `the block device ${of} is gone`);
  const source = await nodeNamed(call, tools, await deviceNode(call, tools, name, of), of, place);
  let failure: unknown;
  try {
    await losetup(call, tools, source, of);
  } catch (error) {
    throwIfOver(call.signal);
    failure = error;
  } finally {
    // The kernel remembers the name.
    await unlink(source).catch(() => {});
  }
  // Where only reading past the cache was refused, the device is there all the same.
  const made = (await readOnlyDevices()).find((one) => one.of === of && one.place === place);
  if (made) return made;
  const why =
    failure instanceof CommandFailed ? failure.stderr : failure instanceof Error ? failure.message : 'none came';
  throw new CallError(
    'FAILED_PRECONDITION',
    `/dev/${name} cannot be published read-only, which takes a loop device: ${why}; the kernel has to have the module loop, the host losetup ` +
      'of util-linux, and a container the host’s /dev',
    { cause: failure },
  );
}

async function losetup(call: CallContext, tools: NodeTools, source: string, of: string): Promise<void> {
  const timeoutMs = tools.limits.mount;
  if (!(await isThere('/sys/class/misc/loop-control'))) {
    // That it was not found is said by losetup, too.
    await tools.run(call, { program: 'modprobe', args: ['loop'], timeoutMs }).catch(() => throwIfOver(call.signal));
  }
  const sector = await sectorSize(of);
  const size = sector > 512 ? ['--sector-size', String(sector)] : [];
  // Not by way of the cache of the device below, which holds it a second time.
  const args = ['--read-only', '--direct-io=on', ...size, '--find', '--show', source];
  await call.waitingFor('`losetup`', () => tools.run(call, { program: 'losetup', args, timeoutMs }));
}

/** A second name of a device node, which says what the loop device is for. It lives for a moment. */
async function nodeNamed(
  call: CallContext,
  tools: NodeTools,
  node: string,
  of: string,
  place: string,
): Promise<string> {
  const path = `/dev/${prefix}${of}-${place}`;
  // One of a process that was killed may be that of a device that had the number before.
  await unlink(path).catch(() => {});
  try {
    await link(node, path);
  } catch (error) {
    // A container may have been given the node alone, from another file system.
    if (errnoOf(error) === 'EEXIST') throw error;
    const [major = '', minor = ''] = of.split(':');
    const args = ['-m', '0600', path, 'b', major, minor];
    await tools.run(call, { program: 'mknod', args, timeoutMs: tools.limits.mount });
  }
  return path;
}

/** Removes what a process that was killed while it made one left in /dev. */
export async function removeNames(place: string): Promise<void> {
  const names = await readdir('/dev').catch(() => []);
  for (const name of names.filter((one) => one.startsWith(prefix) && one.endsWith(place))) {
    await unlink(`/dev/${name}`).catch(() => {});
  }
}

/** Bytes of a sector as partition tables count them. A partition has that of its disk. */
async function sectorSize(device: string): Promise<number> {
  const directory = await realpath(`/sys/dev/block/${device}`);
  for (const one of [directory, dirname(directory)]) {
    const text = await readFile(`${one}/queue/logical_block_size`, 'utf8').catch(() => undefined);
    if (text !== undefined) return Number(text);
  }
  return 512;
}

/** Makes it as large as what it shows has become. */
export async function followSize(call: CallContext, tools: NodeTools, device: ReadOnlyDevice): Promise<void> {
  const size = await deviceSize(device.of);
  if (size === undefined || size === (await deviceSize(device.number))) return;
  const args = ['--set-capacity', await deviceNode(call, tools, device.name, device.number)];
  await tools.run(call, { program: 'losetup', args, timeoutMs: tools.limits.mount });
}

/** Takes the device away; one that somebody has open goes when it is closed. Gone already: success. */
export async function removeReadOnlyDevice(call: CallContext, tools: NodeTools, device: ReadOnlyDevice): Promise<void> {
  const isLeft = async () => (await readOnlyDeviceAt(device.number))?.place === device.place;
  if (!(await isLeft())) return;
  try {
    const args = ['--detach', await deviceNode(call, tools, device.name, device.number)];
    await tools.run(call, { program: 'losetup', args, timeoutMs: tools.limits.mount });
  } catch (error) {
    if (call.signal.aborted || (await isLeft())) throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
