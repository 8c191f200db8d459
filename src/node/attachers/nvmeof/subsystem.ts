/**
 * NVMe subsystems as sysfs shows them (Documentation/ABI and drivers/nvme/host of Linux). Nothing here touches the storage.
 *
 * `class/nvme-subsystem/nvme-subsys0` has links to its controllers. With the kernel's own multipath, a namespace is one disk of the subsystem,
 * `nvme0n1`, whose paths `nvme0c1n1` are hidden disks of the controllers; without it, every controller has a disk of its own.
 */
import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path/posix';
import { ifThere } from '../../../core/if-there.ts';
import { multipathOf } from '../../multipath.ts';
import { namesIn, textOf } from '../../sysfs.ts';
import { idDigits, type NamespaceName } from './target.ts';

/** A connection to a subsystem. */
export interface Controller {
  readonly name: string;
  readonly folder: string;
  readonly transport: string;
  /** `live`, `connecting`, `resetting`, `deleting` … */
  readonly state: string;
  /** `traddr`, `trsvcid`, `host_traddr`, `host_iface` … */
  readonly address: ReadonlyMap<string, string>;
}

/** A disk that shows a namespace: all paths to it, or one. */
export interface NamespaceDisk {
  /** `nvme0n1` */
  readonly name: string;
  readonly folder: string;
  /** `major:minor` */
  readonly number: string;
  readonly nsid: string;
  readonly bytes: number;
  /** What names it worldwide: `uuid.…`, `eui.…`. */
  readonly wwid: string;
  /** 32 digits, where the namespace has one. */
  readonly uuid: string | undefined;
  readonly nguid: string | undefined;
  /** True when it joins all paths. */
  readonly joined: boolean;
  /** The state of each path: that of its controller, or why the subsystem does not serve it. */
  readonly states: readonly string[];
}

/** Everything that is connected under one NQN. */
export interface Subsystem {
  readonly controllers: readonly Controller[];
  readonly disks: readonly NamespaceDisk[];
}

/** Transports that connections are made over. The controller of a disk in this very machine is never touched. */
const fabrics: ReadonlySet<string> = new Set(['tcp', 'rdma', 'fc']);

/** What is connected under an NQN. Nothing: no controllers, no disks. */
export async function readSubsystem(sysfs: string, nqn: string): Promise<Subsystem> {
  const folders = await subsystemFolders(sysfs, nqn);
  const found = await Promise.all(folders.map(readFolder));
  return { controllers: found.flatMap((one) => one.controllers), disks: found.flatMap((one) => one.disks) };
}

/** Which namespace the block device `major:minor` is, a partition or a multipath map of it. Undefined: none of a subsystem reached over a network. */
export async function namespaceOf(sysfs: string, device: string): Promise<NamespaceName | undefined> {
  const place = await ifThere(() => realpath(join(sysfs, 'dev/block', device)));
  if (place === undefined) return undefined;
  const [path] =
    (
      await multipathOf(
        sysfs,
        [basename(place)].filter((name) => name.startsWith('dm-')),
      )
    )?.paths ?? [];
  if (path !== undefined) return await namespaceAt(await realpath(join(sysfs, 'class/block', path)), sysfs);
  return await namespaceAt(place, sysfs);
}

async function namespaceAt(place: string, sysfs: string): Promise<NamespaceName | undefined> {
  const disk = (await text(place, 'partition')) === undefined ? place : dirname(place);
  const nsid = await text(disk, 'nsid');
  const nqn = await text(dirname(disk), 'subsysnqn');
  if (!nsid || !nqn) return undefined;
  const { controllers } = await readSubsystem(sysfs, nqn);
  return controllers.length > 0 ? { nqn, nsid } : undefined;
}

async function subsystemFolders(sysfs: string, nqn: string): Promise<readonly string[]> {
  const root = join(sysfs, 'class/nvme-subsystem');
  // One that is still open after its last connection was lost stays beside the one that takes its place.
  const folders = (await namesIn(root)).map((name) => join(root, name));
  const names = await Promise.all(folders.map((folder) => text(folder, 'subsysnqn')));
  return folders.filter((_folder, index) => names[index] === nqn);
}

async function readFolder(folder: string): Promise<Subsystem> {
  const names = await namesIn(folder);
  const read = names.filter((name) => /^nvme\d+$/.test(name)).map((name) => readController(folder, name));
  const controllers = (await Promise.all(read)).filter((one) => one !== undefined);
  if (controllers.length === 0) return { controllers, disks: [] };
  const paths = await Promise.all(controllers.map((one) => namesIn(one.folder)));
  const joined = names.filter(isDisk).map(async (name) => {
    const states = controllers.flatMap((controller, index) =>
      (paths[index] ?? []).filter((path) => isPathOf(path, name)).map((path) => pathState(controller, path)),
    );
    return await readDisk(folder, name, true, await Promise.all(states));
  });
  const single = controllers.flatMap((controller, index) =>
    (paths[index] ?? []).filter(isDisk).map((name) => readDisk(controller.folder, name, false, [controller.state])),
  );
  const disks = (await Promise.all([...joined, ...single])).filter((one) => one !== undefined);
  return { controllers, disks };
}

async function readController(folder: string, name: string): Promise<Controller | undefined> {
  const own = join(folder, name);
  const [transport = '', state = '', address = ''] = await Promise.all(
    ['transport', 'state', 'address'].map((file) => text(own, file)),
  );
  if (!fabrics.has(transport)) return undefined;
  const pairs = address.split(',').map((part) => {
    const at = part.indexOf('=');
    return [part.slice(0, at), part.slice(at + 1).trim()] as const;
  });
  return { name, folder: own, transport, state, address: new Map(pairs) };
}

async function readDisk(
  folder: string,
  name: string,
  joined: boolean,
  states: readonly string[],
): Promise<NamespaceDisk | undefined> {
  const own = join(folder, name);
  const files = ['dev', 'nsid', 'size', 'wwid', 'uuid', 'nguid'];
  const [number, nsid, size, wwid = '', uuid, nguid] = await Promise.all(files.map((file) => text(own, file)));
  if (!number || !nsid) return undefined;
  const ids = { uuid: idDigits(uuid ?? ''), nguid: idDigits(nguid ?? '') };
  return { name, folder: own, number, nsid, bytes: Number(size ?? 0) * 512, wwid, ...ids, joined, states };
}

/** Asymmetric access: a path may be there that the subsystem does not serve at the moment. */
async function pathState(controller: Controller, path: string): Promise<string> {
  const access = await text(controller.folder, `${path}/ana_state`);
  return access === undefined || /optimized$/.test(access) ? controller.state : access;
}

function isDisk(name: string): boolean {
  return /^nvme\d+n\d+$/.test(name);
}

/** `nvme0c1n2` is a path of `nvme0n2`. */
function isPathOf(path: string, disk: string): boolean {
  return path.replace(/c\d+n/, 'n') === disk && path !== disk;
}

async function text(folder: string, file: string): Promise<string | undefined> {
  return await textOf(join(folder, file));
}
