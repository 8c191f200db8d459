import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import { type CallContext, throwIfOver } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { flushMultipath, multipathOf } from '../../multipath.ts';
import { poll } from '../../poll.ts';
import { diskOf, type ScsiDisk, type ScsiUnit, unitsBelow } from '../../scsi-disk.ts';
import type { NodeTools } from '../../tools.ts';
import { type RefuseInUse, whyUsed } from '../../why-used.ts';
import { daemonGone, exitCodeOf, exitCodes, isDaemonGone } from './exit-codes.ts';
import { removeUnit } from './find-disk.ts';
import { iscsiPlace } from './log-in.ts';
import { isAutomatic, isMarked } from './node-record.ts';
import { isSamePortal, portalText } from './portal.ts';
import { type RecordFile, recordsOf, removeRecord } from './record-files.ts';
import { removeLeftSamples } from './sample-record.ts';
import { type IscsiSession, sessionsOf } from './session.ts';
import type { IscsiVolume } from './volume.ts';

/** A session with what it carries. */
interface Carrier {
  readonly session: IscsiSession;
  readonly own: readonly Unit[];
  readonly others: readonly Unit[];
}

interface Unit extends ScsiUnit {
  readonly disk: ScsiDisk | undefined;
}

/**
 * Takes a volume away from this machine: its disks, the sessions that carry nothing else, and the node records that were made for volumes. A
 * session that somebody else has made and that carries another disk, used or not, stays. `isShared`: other volumes of the same target are wanted
 * here; `refuseOther` looks whether other disks are in use. Throws FAILED_PRECONDITION while the volume is in use; nothing has happened then.
 */
export async function detachVolume(
  call: CallContext,
  tools: NodeTools,
  volume: Pick<IscsiVolume, 'iqn' | 'lun'>,
  isShared: boolean,
  refuseInUse: RefuseInUse,
  refuseOther: RefuseInUse,
): Promise<void> {
  const { sysfs = '/sys' } = tools;
  const sessions = await sessionsOf(sysfs, volume.iqn);
  const carriers = await Promise.all(sessions.map((session) => carrierOf(session, volume.lun)));
  await release(call, tools, carriers, refuseInUse);

  const { root } = await iscsiPlace(tools);
  await removeLeftSamples(root);
  const records = await recordsOf(root, volume.iqn);
  const left: IscsiSession[] = [];
  const results = await Promise.allSettled(
    carriers.map(async (carrier) => {
      const why = isShared ? 'another volume' : await whyKept(call, tools, carrier, records, refuseOther);
      if (why === undefined) {
        await logOut(call, tools, carrier.session);
        return;
      }
      call.log.debug('a session stays', { iqn: volume.iqn, session: carrier.session.id, why });
      left.push(carrier.session);
      for (const unit of carrier.own) await removeUnit(call, tools, unit);
    }),
  );
  throwIfOver(call.signal);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  if (isShared || left.length > 0) return;
  for (const record of records) if (isMarked(record.text) && !isAutomatic(record.text)) await removeRecord(record);
}

async function carrierOf(session: IscsiSession, lun: number): Promise<Carrier> {
  const found = await unitsBelow(session.directory);
  const units = await Promise.all(found.map(async (unit) => ({ ...unit, disk: await diskOf(unit) })));
  return {
    session,
    own: units.filter((unit) => unit.lun === lun),
    others: units.filter((unit) => unit.lun !== lun),
  };
}

/** Makes sure that nobody uses the volume, and takes the map away that joins its paths. */
async function release(
  call: CallContext,
  tools: NodeTools,
  carriers: readonly Carrier[],
  refuseInUse: RefuseInUse,
): Promise<void> {
  const { sysfs = '/sys' } = tools;
  const disks = carriers.flatMap(({ own }) => own.flatMap(({ disk }) => disk ?? []));
  const map = await multipathOf(
    sysfs,
    disks.map((disk) => disk.name),
  );
  const onTop = map ? [map.number] : disks.map((disk) => disk.number);
  for (const device of onTop) await refuseInUse(call, device);
  if (map) await flushMultipath(call, tools, map);
}

/** Why a session must stay, as it seems; undefined: it carries nothing that anybody uses. */
async function whyKept(
  call: CallContext,
  tools: NodeTools,
  { session, others }: Carrier,
  records: readonly RecordFile[],
  refuseInUse: RefuseInUse,
): Promise<string | undefined> {
  const own = records.filter((record) => isOfSession(record, session));
  if (own.some(({ text }) => isAutomatic(text))) return 'this machine logs in by itself when it starts';
  for (const { address, disk } of others) {
    if (!disk) continue;
    if (!own.some(({ text }) => isMarked(text))) return `somebody else has made it, and has ${disk.name} (${address})`;
    const why = await whyUsed(call, tools, disk, refuseInUse);
    if (why !== undefined) return `${disk.name} (${address}) is used: ${why}`;
  }
  return undefined;
}

/** Milliseconds for iscsid to bring a session back: it logs out of none that it has just lost or, having just started, not found yet. */
const recoveryMs = 10_000;

async function logOut(call: CallContext, tools: NodeTools, session: IscsiSession): Promise<void> {
  const where = session.portal ? ` at ${portalText(session.portal)}` : '';
  const tryOnce = () => logOutOnce(call, tools, session, where);
  const error = await poll(call, recoveryMs, async () => {
    const failure = await tryOnce();
    return exitCodeOf(failure) === exitCodes.notConnected ? undefined : (failure ?? 'done');
  });
  if (error === 'done') return;
  if (isDaemonGone(error)) throw daemonGone(error);
  const why = error?.stderr ?? 'its target does not answer, and iscsid does not give it up yet';
  throw new CallError('UNAVAILABLE', `cannot log out of ${session.iqn}${where}: ${why}`, { cause: error });
}

/** Gives the failure, if it failed and the session is still there. */
async function logOutOnce(
  call: CallContext,
  tools: NodeTools,
  session: IscsiSession,
  where: string,
): Promise<CommandFailed | undefined> {
  try {
    await call.waitingFor(`\`iscsiadm\` to log out of ${session.iqn}${where}`, () =>
      tools.run(call, {
        program: 'iscsiadm',
        args: ['-m', 'session', '-r', String(session.id), '-u'],
        timeoutMs: tools.limits.iscsi,
      }),
    );
    return undefined;
  } catch (error) {
    throwIfOver(call.signal);
    if (!(error instanceof CommandFailed)) throw error;
    return (await isGone(tools, session)) ? undefined : error;
  }
}

async function isGone(tools: NodeTools, session: IscsiSession): Promise<boolean> {
  const { sysfs = '/sys' } = tools;
  return !(await sessionsOf(sysfs, session.iqn)).some(({ id }) => id === session.id);
}

function isOfSession(record: RecordFile, { portal, interface: name }: IscsiSession): boolean {
  return portal !== undefined && isSamePortal(record.portal, portal) && record.interface === name;
}
