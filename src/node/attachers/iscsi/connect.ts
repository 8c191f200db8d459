import type { CallContext } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { isMultipathed, multipathOf } from '../../multipath.ts';
import { poll } from '../../poll.ts';
import { diskOf, unitsBelow } from '../../scsi-disk.ts';
import type { NodeTools } from '../../tools.ts';
import type { RefuseInUse } from '../../why-used.ts';
import { disksInUse, type UsedDisk } from './disks-in-use.ts';
import { iscsiPlace, type LoginFailure, logIn } from './log-in.ts';
import { isSamePortal, portalText } from './portal.ts';
import { hasInterface } from './record-files.ts';
import { type IscsiSession, sessionsOf } from './session.ts';
import type { IscsiVolume } from './volume.ts';

export interface Connected {
  /** Sessions that work: at least one. */
  readonly sessions: readonly IscsiSession[];
  /** Whether their disks are to be joined by multipathd. */
  readonly multipath: boolean;
}

/** Milliseconds that iscsid gets to bring back a session that it has lost, while there is no other. */
const recoveryMs = 5000;

/**
 * Makes sure that there are sessions with the target of a volume: at every portal where multipathd joins the paths, at one portal otherwise, for
 * two disks that are the same one must not be mounted as two. Sessions that are there are used, whoever made them. Throws UNAVAILABLE when no
 * portal works, and while the volume's disk in a session that was lost is in use.
 */
export async function connect(
  call: CallContext,
  tools: NodeTools,
  wanted: IscsiVolume,
  refuseInUse: RefuseInUse,
): Promise<Connected> {
  const { sysfs = '/sys' } = tools;
  const volume = await withKnownInterface(call, tools, wanted);
  await requireUsed(call, tools, volume, refuseInUse);
  const sessions = await sessionsOf(sysfs, volume.iqn);
  const several = volume.portals.length > 1;
  const multipath = several && ((await isJoined(sysfs, sessions)) || (await isMultipathed(call, tools)));
  if (several && !multipath) {
    call.log.debug('multipathd does not run: one of the portals is used', { iqn: volume.iqn });
  }
  // iscsid brings back by itself what has been logged in once.
  const missing = volume.portals.filter((portal) => !sessions.some((one) => isSession(one, volume, portal)));
  const live = sessions.filter((one) => one.isLive);
  if (missing.length === 0 || (live.length > 0 && !multipath)) return await requireLive(call, tools, volume, multipath);

  const failures = await logIn(call, tools, volume, missing, multipath ? 'all' : 'first');
  const connected = await requireLive(call, tools, volume, multipath, failures);
  for (const { portal, error } of failures) {
    call.log.warn('a portal of the volume does not work, another one does', {
      iqn: volume.iqn,
      portal: portalText(portal),
      why: error.message,
    });
  }
  return connected;
}

/** Volumes may name an interface that only some nodes have, or none: then the routes decide. */
async function withKnownInterface(call: CallContext, tools: NodeTools, volume: IscsiVolume): Promise<IscsiVolume> {
  const { interface: name } = volume;
  if (name === undefined || (await hasInterface((await iscsiPlace(tools)).root, name))) return volume;
  call.log.warn('iscsiadm has no interface of the name that the volume context says; the routes decide', {
    interface: name,
    todo: `iscsiadm -m iface -I ${name} -o new`,
  });
  return { ...volume, interface: undefined };
}

function isSession(session: IscsiSession, volume: IscsiVolume, portal: IscsiVolume['portals'][number]): boolean {
  if (volume.interface !== undefined && session.interface !== volume.interface) return false;
  return session.portal !== undefined && isSamePortal(session.portal, portal);
}

async function isJoined(sysfs: string, sessions: readonly IscsiSession[]): Promise<boolean> {
  const units = (await Promise.all(sessions.map((session) => unitsBelow(session.directory)))).flat();
  const disks = (await Promise.all(units.map(diskOf))).filter((disk) => disk !== undefined);
  return (
    (await multipathOf(
      sysfs,
      disks.map((disk) => disk.name),
    )) !== undefined
  );
}

async function requireLive(
  call: CallContext,
  tools: NodeTools,
  volume: IscsiVolume,
  multipath: boolean,
  failures: readonly LoginFailure[] = [],
): Promise<Connected> {
  const { sysfs = '/sys' } = tools;
  let known: readonly IscsiSession[] = [];
  const look = async () => {
    known = await sessionsOf(sysfs, volume.iqn);
    const live = known.filter((session) => session.isLive);
    return live.length > 0 || known.length === 0 ? live : undefined;
  };
  const sessions = (await call.waitingFor(`sessions with ${volume.iqn}`, () => poll(call, recoveryMs, look))) ?? [];
  if (sessions.length > 0) return { sessions, multipath };
  throw noPortal(volume, known, failures);
}

/** Waits for a session that was lost while its disk of the volume is in use: what it holds must not come here by another way meanwhile. */
async function requireUsed(
  call: CallContext,
  tools: NodeTools,
  volume: IscsiVolume,
  refuseInUse: RefuseInUse,
): Promise<void> {
  const { sysfs = '/sys' } = tools;
  const look = async () => (await sessionsOf(sysfs, volume.iqn)).filter((session) => !session.isLive);
  const lost = await look();
  const [used] = await disksInUse(call, tools, lost, volume.lun, refuseInUse);
  if (!used) return;
  const isBack = async () => (await look()).every(({ id }) => id !== used.session.id) || undefined;
  const waiting = call.waitingFor(`the session of ${used.disk.name}`, () => poll(call, recoveryMs, isBack));
  if (!(await waiting)) throw secondDisk(volume, used);
}

/** For a volume that must not be attached by another way than the one by which it is in use. */
export function secondDisk({ iqn, lun }: IscsiVolume, { disk, session, why }: UsedDisk): CallError {
  const where = session.portal ? ` at ${portalText(session.portal)}` : '';
  const state = session.isLive ? 'does not work' : 'was lost';
  return new CallError(
    'UNAVAILABLE',
    `LUN ${lun} of ${iqn} is in use here as ${disk.name}, whose session${where} ${state}, and must not be used by a second disk beside it: wait for ` +
      `the portal, or unmount and unstage the volume first (${why})`,
  );
}

function noPortal(volume: IscsiVolume, known: readonly IscsiSession[], failures: readonly LoginFailure[]): CallError {
  const lost = known.flatMap(({ portal }) =>
    portal ? `${portalText(portal)}: the session was lost, iscsid tries to bring it back` : [],
  );
  const failed = failures.map(({ portal, error }) => `${portalText(portal)}: ${error.message}`);
  const [first] = failures;
  // What one portal says of credentials or of this host is more than that another cannot be reached.
  const telling = failures.find(({ error }) => error.code !== 'UNAVAILABLE') ?? first;
  const code = telling?.error.code ?? 'UNAVAILABLE';
  return new CallError(code, `no portal of ${volume.iqn} works: ${[...failed, ...lost].join('; ')}`, {
    cause: telling?.error,
  });
}
