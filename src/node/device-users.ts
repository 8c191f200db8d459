/**
 * Who has a block device without the kernel's keeping others from it: processes that have opened it for writing, by whatever name, and mounts of its
 * device node. Only what /proc shows is seen: in a container without the machine's processes, that is the container's own, unless the host's /proc
 * is in the host's root directory.
 */
import { lstat, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { defaultHostSettings } from '../backends/exec/host-settings.ts';
import { type CallContext, reasonOf, untilOver } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { deviceNumber } from './device-number.ts';
import { deviceName } from './devices.ts';
import { type Mount, parseMountTable } from './mount-table.ts';
import { partitionsOf } from './partitions.ts';
import type { NodeTools } from './tools.ts';

/** Pauses in milliseconds between looks: many programs open a device only for a moment. */
const pauses = [100, 400];

/** Throws FAILED_PRECONDITION while somebody has the device `major:minor`, or a partition of it, open for writing, or its node mounted. */
export async function refuseOpen(
  call: CallContext,
  device: string,
  { hostRoot = defaultHostSettings.root }: Pick<NodeTools, 'hostRoot'> = {},
): Promise<void> {
  const devices = [device, ...(await partitionsOf(device))];
  const names = (await Promise.all(devices.map(deviceName))).filter((name) => name !== undefined);
  // Gone already.
  if (names.length === 0) return;
  for (const pause of [...pauses, undefined]) {
    const { writers, nodes } = await untilOver(call.signal, look(hostRoot));
    const users = [
      ...devices.flatMap((one) => writers.get(one) ?? []),
      ...nodes.flatMap(({ name, seen }) => (names.includes(name) ? seen : [])),
    ];
    if (users.length === 0) return;
    if (pause === undefined) {
      const by = [...new Set(users)].slice(0, 5).join(', ');
      throw new CallError(
        'FAILED_PRECONDITION',
        `/dev/${names[0]} is in use: ${by}; it stays attached until that ends`,
      );
    }
    await call.waitingFor(`users of /dev/${names[0]} to let go`, () =>
      setTimeout(pause, undefined, { signal: call.signal }).catch(() => {
        throw reasonOf(call.signal);
      }),
    );
  }
}

/** All of the machine, as of one look. */
interface Users {
  /** For people, by `major:minor`. */
  readonly writers: ReadonlyMap<string, readonly string[]>;
  /** Mounted device nodes by the kernel's name of the device. */
  readonly nodes: readonly { readonly name: string; readonly seen: string }[];
}

let running: Promise<Users> | undefined;
let next: Promise<Users> | undefined;

/** One look serves all who ask before it begins. */
function look(hostRoot: string): Promise<Users> {
  next ??= (async () => {
    await running?.catch(() => {});
    running = next;
    next = undefined;
    return await lookAround(hostRoot);
  })();
  return next;
}

async function lookAround(hostRoot: string): Promise<Users> {
  const writers = new Map<string, string[]>();
  const nodes: { name: string; seen: string }[] = [];
  const places = new Map<number, Mount>();
  for (const proc of await procFolders(hostRoot)) {
    const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name));
    const namespaces = new Set<string>();
    for (const pid of pids) {
      // A namespace that cannot be told from others may be one of its own.
      const namespace = await readlink(`${proc}/${pid}/ns/mnt`).catch(() => pid);
      if (namespaces.has(namespace)) continue;
      namespaces.add(namespace);
      const { mounts } = parseMountTable(await readFile(`${proc}/${pid}/mountinfo`, 'utf8').catch(() => ''));
      for (const mount of mounts) places.set(mount.id, mount);
      for (const mount of mounts.filter(isNode)) {
        const seen = `its node is mounted at ${mount.mountPoint}, which ${await describe(proc, pid)} sees`;
        nodes.push({ name: mount.root.slice(1).replaceAll('/', '!'), seen });
      }
    }
    for (const pid of pids) {
      for (const device of await openedBy(proc, pid, places)) {
        const users = writers.get(device) ?? [];
        writers.set(device, [...users, `${await describe(proc, pid)} has it open for writing`]);
      }
    }
  }
  return { writers, nodes };
}

/** The /proc of this process, and that of the host where it is another one. */
async function procFolders(hostRoot: string): Promise<readonly string[]> {
  const own = await stat('/proc');
  const host = await stat(`${hostRoot}/proc`).catch(() => undefined);
  return host === undefined || host.dev === own.dev ? ['/proc'] : ['/proc', `${hostRoot}/proc`];
}

/** The kernel's own /dev has nothing but nodes at its root, besides folders. */
function isNode({ fsType, root }: Mount): boolean {
  return fsType === 'devtmpfs' && root !== '/' && !root.endsWith('//deleted');
}

/** Where device nodes are. Looking at any other file could wait for a server that is gone. */
const local: ReadonlySet<string> = new Set([
  'devtmpfs',
  'tmpfs',
  'ramfs',
  'rootfs',
  'overlay',
  'ext2',
  'ext3',
  'ext4',
  'xfs',
  'btrfs',
  'zfs',
  'f2fs',
  'hostfs',
]);

/** `major:minor` of the block devices that a process has open for writing. Nothing of a process that ends, or that may not be looked at. */
async function openedBy(proc: string, pid: string, places: ReadonlyMap<number, Mount>): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const folder = `${proc}/${pid}/fd`;
  for (const fd of await readdir(folder).catch(() => [])) {
    const path = await readlink(`${folder}/${fd}`).catch(() => '');
    if (!path.startsWith('/') || /^\/(dev\/(null|zero|tty|u?random|pts\/|shm\/|net\/)|memfd:|proc\/|sys\/)/.test(path))
      continue;
    // The link is writable if the file was opened for writing.
    const link = await lstat(`${folder}/${fd}`).catch(() => undefined);
    if (link === undefined || (link.mode & 0o200) === 0) continue;
    const about = await readFile(`${proc}/${pid}/fdinfo/${fd}`, 'utf8').catch(() => '');
    const place = places.get(Number(/^mnt_id:\s*(\d+)$/m.exec(about)?.[1]));
    const mayBe = place ? local.has(place.fsType) && !place.options.includes('nodev') : path.startsWith('/dev/');
    const file = mayBe ? await stat(`${folder}/${fd}`).catch(() => undefined) : undefined;
    if (file?.isBlockDevice()) found.add(deviceNumber(file.rdev));
  }
  return found;
}

async function describe(proc: string, pid: string): Promise<string> {
  const name = (await readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '')).trim();
  return name ? `process ${pid} (${name})` : `process ${pid}`;
}
