/** The block device that a namespace is on this node: found in sysfs by what it is, never by where it happens to appear. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { CallContext } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { poll } from '../../poll.ts';
import type { Connector } from './connect.ts';
import { rescan } from './rescan.ts';
import { type NamespaceDisk, readSubsystem, type Subsystem } from './subsystem.ts';
import type { Target } from './target.ts';

/** Milliseconds for a lost connection to come back: the kernel tries again every ten seconds. */
const reconnectMs = 15_000;
/** Milliseconds until a subsystem is asked again which namespaces it has, and until it is taken at its word. */
const promptMs = 1000;
const namespaceMs = 10_000;

/** The path of a connected namespace's device. Throws UNAVAILABLE, NOT_FOUND, or FAILED_PRECONDITION when it is not for certain the one. */
export async function namespaceDevice(call: CallContext, connector: Connector, target: Target): Promise<string> {
  const { places, tools } = connector;
  const { nqn, nsid } = target;
  const read = () => readSubsystem(places.sysfs, nqn);
  const waitFor = <T>(ms: number, look: (now: Subsystem) => T | undefined | Promise<T | undefined>) =>
    call.waitingFor(`namespace ${nsid} of ${nqn}`, () =>
      poll(call, Math.min(ms, tools.limits.nvmeof), async () => await look(await read())),
    );

  if (!(await waitFor(reconnectMs, (now) => isLive(now) || undefined))) throw lost(target, await read());
  const find = (now: Subsystem) => usableDisk(connector, target, now);
  let name = await waitFor(promptMs, find);
  if (name === undefined) {
    await rescan(call, await read());
    name = await waitFor(namespaceMs, find);
  }
  if (name === undefined) throw notUsable(target, await read());
  return await deviceNode(call, connector, name);
}

function isLive({ controllers }: Subsystem): boolean {
  return controllers.some(({ state }) => state === 'live');
}

/** The name of the disk when it can be used. Throws FAILED_PRECONDITION when what is there is something else. */
async function usableDisk(
  { places }: Connector,
  target: Target,
  { controllers, disks }: Subsystem,
): Promise<string | undefined> {
  const found = disks.filter(({ nsid }) => nsid === target.nsid);
  for (const disk of found) refuseOther(target, disk);
  if (found.length === 0 || found.some(({ bytes }) => bytes === 0)) return undefined;
  const [first] = found;
  if (first?.joined) {
    if (found.length > 1) throw ambiguous(target, found);
    return first.states.includes('live') ? first.name : undefined;
  }
  // Without the kernel's own multipath every connection has a disk, and what joins them may have them already, or is about to.
  const maps = new Set(await Promise.all(found.map((disk) => mapOf(join(places.sysfs, 'class/block'), disk.name))));
  const [map] = maps;
  if (map !== undefined && maps.size === 1) return map;
  const live = controllers.filter(({ state }) => state === 'live').length;
  return first && found.length === 1 && live === 1 && first.states.includes('live') ? first.name : undefined;
}

function refuseOther({ nqn, nsid, uuid, nguid }: Target, disk: NamespaceDisk): void {
  const isOther = (wanted: string | undefined, has: string | undefined) => wanted !== undefined && wanted !== has;
  if (!isOther(uuid, disk.uuid) && !isOther(nguid, disk.nguid)) return;
  const has = disk.uuid ?? disk.nguid ?? 'neither UUID nor NGUID';
  throw new CallError(
    'FAILED_PRECONDITION',
    `namespace ${nsid} of ${nqn} is another one than this volume: it has ${has}, not ${uuid ?? nguid}`,
  );
}

/** The multipath device that has taken a disk. */
async function mapOf(folder: string, disk: string): Promise<string | undefined> {
  for (const holder of await readdir(join(folder, disk, 'holders')).catch(() => [])) {
    const uuid = await readFile(join(folder, holder, 'dm/uuid'), 'utf8').catch(() => '');
    if (uuid.startsWith('mpath-')) return holder;
  }
  return undefined;
}

function ambiguous({ nqn, nsid }: Target, disks: readonly NamespaceDisk[]): CallError {
  const names = disks.map(({ name }) => `/dev/${name}`).join(', ');
  return new CallError(
    'FAILED_PRECONDITION',
    `namespace ${nsid} of ${nqn} is ${names}, which nothing joins: mounting two of them would destroy it. Boot with ` +
      'nvme_core.multipath=Y, start multipathd, or give the volume one transport',
  );
}

function lost({ nqn, transports }: Target, { controllers }: Subsystem): CallError {
  const titles = transports.map(({ title }) => title).join(', ');
  const states = controllers.map(({ name, state }) => `${name} is ${state}`).join(', ');
  return new CallError('UNAVAILABLE', `${nqn} does not answer at ${titles}${states && ` (${states})`}`);
}

function notUsable(target: Target, { disks, controllers }: Subsystem): CallError {
  const { nqn, nsid } = target;
  const found = disks.filter((disk) => disk.nsid === nsid);
  if (found.length > 1) return ambiguous(target, found);
  const [disk] = found;
  if (disk === undefined) {
    const has = [...new Set(disks.map((one) => one.nsid))].join(', ') || 'none that this host may use';
    return new CallError('NOT_FOUND', `${nqn} has no namespace ${nsid}; it has ${has}`);
  }
  if (disk.bytes === 0)
    return new CallError('UNAVAILABLE', `namespace ${nsid} of ${nqn} has no size: its storage is gone`);
  if (!disk.joined && controllers.length > 1) {
    return new CallError(
      'UNAVAILABLE',
      `not all ways to namespace ${nsid} of ${nqn} are there, and nothing joins them`,
    );
  }
  const states = disk.states.join(', ') || 'none';
  return new CallError('UNAVAILABLE', `no path to namespace ${nsid} of ${nqn} is live: ${states}`);
}

/** udev or the kernel makes the node, moments after the disk. */
async function deviceNode(call: CallContext, { places }: Connector, name: string): Promise<string> {
  const path = `${places.dev}/${name}`;
  const number = (await readFile(join(places.sysfs, 'class/block', name, 'dev'), 'utf8').catch(() => '')).trim();
  const found = await poll(call, 5000, async () => (await places.numberOf(path)) === number || undefined);
  if (found && number !== '') return path;
  throw new CallError('FAILED_PRECONDITION', `there is no ${path} (${number}): give this process the host’s /dev`);
}
