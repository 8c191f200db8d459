/** The block device that a namespace is on this node: found in sysfs by what it is, never by where it happens to appear. */
import type { CallContext } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { awaitMultipath, isMultipathed, multipathOf } from '../../multipath.ts';
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
  const waitFor = <T>(ms: number, look: (now: Subsystem) => T | undefined) =>
    call.waitingFor(`namespace ${nsid} of ${nqn}`, () =>
      poll(call, Math.min(ms, tools.limits.nvmeof), async () => look(await read())),
    );

  if (!(await waitFor(reconnectMs, (now) => isLive(now) || undefined))) throw lost(target, await read());
  const find = (now: Subsystem) => usableDisks(target, now);
  let disks = await waitFor(promptMs, find);
  if (disks === undefined) {
    await rescan(call, await read());
    disks = await waitFor(namespaceMs, find);
  }
  const [disk] = disks ?? [];
  if (disks === undefined || disk === undefined) throw notUsable(target, await read());
  const { name, number } = disk.joined ? disk : await joinedDisk(call, connector, target, disks);
  return await places.nodeOf(call, tools, name, number);
}

function isLive({ controllers }: Subsystem): boolean {
  return controllers.some(({ state }) => state === 'live');
}

/** The disks that show the namespace, when they can be used. Throws FAILED_PRECONDITION when what is there is something else. */
function usableDisks(target: Target, { controllers, disks }: Subsystem): readonly NamespaceDisk[] | undefined {
  const found = disks.filter(({ nsid }) => nsid === target.nsid);
  for (const disk of found) refuseOther(target, disk);
  if (found.some(({ bytes }) => bytes === 0)) return undefined;
  const joined = found.filter((disk) => disk.joined);
  if (joined.length > 0) {
    if (found.length > 1) throw ambiguous(target, found);
    return joined[0]?.states.includes('live') ? joined : undefined;
  }
  const live = found.filter(({ states }) => states.includes('live'));
  const paths = controllers.filter(({ state }) => state === 'live').length;
  return live.length > 0 && live.length === paths ? found : undefined;
}

/** Without the kernel's own multipath every connection has a disk, which multipathd joins. */
async function joinedDisk(
  call: CallContext,
  { tools, places }: Connector,
  target: Target,
  disks: readonly NamespaceDisk[],
): Promise<{ readonly name: string; readonly number: string }> {
  const names = disks.map(({ name }) => name);
  const wwids = new Set(disks.map(({ wwid }) => wwid));
  const [wwid = ''] = wwids;
  if (wwids.size > 1) throw ambiguous(target, disks);
  const wanted = disks.length > 1 || target.transports.length > 1;
  const map =
    (await multipathOf(places.sysfs, names)) ??
    (wanted && (await isMultipathed(call, tools)) ? await awaitMultipath(call, tools, names, wwid) : undefined);
  if (map) return { name: map.device, number: map.number };
  const [disk] = disks;
  if (disk === undefined || disks.length > 1) throw ambiguous(target, disks);
  return disk;
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
