import type { CallContext } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { poll } from '../../poll.ts';
import { diskOf, type ScsiDisk, type ScsiUnit, unitsBelow } from '../../scsi-disk.ts';
import { lunCodes } from '../../scsi-lun.ts';
import type { NodeTools } from '../../tools.ts';
import { type RefuseInUse, whyUsed } from '../../why-used.ts';
import { writeSysfs } from '../../write-sysfs.ts';
import type { IscsiSession } from './session.ts';

/** Milliseconds until a disk that the kernel has found has its size; and until it is known that it has not found one. */
const readyMs = 10_000;
const foundMs = 500;

/**
 * The disk that a session has of a LUN, as it is now: one that was known before is asked again what it is, and made anew when it is another by
 * now or does not work. Throws NOT_FOUND when the target has no such LUN for this node, FAILED_PRECONDITION when a disk in use is another by now.
 */
export async function findDisk(
  call: CallContext,
  tools: NodeTools,
  session: IscsiSession,
  lun: number,
  refuseInUse: RefuseInUse,
): Promise<ScsiDisk> {
  const known = await unitOf(session, lun);
  const before = known && (await diskOf(known));
  if (known && before) {
    const now = (await askAgain(call, tools, before)) ? await diskOf(known) : undefined;
    if (now && isSame(before, now)) return now;
    call.log.warn('a disk is not what it was, and is made anew', {
      disk: before.name,
      was: before.wwid,
      is: now?.wwid,
    });
    const why = await whyUsed(call, tools, before, refuseInUse);
    if (why !== undefined) {
      throw new CallError(
        'FAILED_PRECONDITION',
        `LUN ${lun} of ${session.iqn} is no more the disk ${before.name} that is in use here: it was removed or replaced at the target (${why})`,
      );
    }
  }
  if (known) await removeUnit(call, tools, known);
  return await scan(call, tools, session, lun);
}

/** The unit that a session has of a LUN. */
async function unitOf(session: IscsiSession, lun: number): Promise<ScsiUnit | undefined> {
  const units = (await unitsBelow(session.directory)).filter((unit) => unit.lun === lun);
  const code = (unit: ScsiUnit) => lunCodes(lun).indexOf(Number(unit.address.split(':')[3]));
  return units.toSorted((one, other) => code(one) - code(other))[0];
}

/** Takes a unit away from the kernel. The target is not asked, and keeps it. */
export async function removeUnit(call: CallContext, tools: NodeTools, unit: ScsiUnit): Promise<void> {
  await writeSysfs(call, tools, `${unit.directory}/delete`, '1', tools.limits.iscsi);
}

/** Makes the kernel read the disk's size and identifiers again. False: it is gone. */
export async function askAgain(call: CallContext, tools: NodeTools, disk: ScsiDisk): Promise<boolean> {
  return await writeSysfs(call, tools, `${disk.directory}/rescan`, '1', tools.limits.iscsi);
}

function isSame(before: ScsiDisk, now: ScsiDisk): boolean {
  return now.bytes > 0 && now.state === 'running' && (before.wwid === undefined || before.wwid === now.wwid);
}

async function scan(call: CallContext, tools: NodeTools, session: IscsiSession, lun: number): Promise<ScsiDisk> {
  const { sysfs = '/sys' } = tools;
  const path = `${sysfs}/class/scsi_host/${session.host}/scan`;
  for (const code of lunCodes(lun)) {
    await writeSysfs(call, tools, path, `0 ${session.targetId ?? '-'} ${code}`, tools.limits.iscsi);
    const last = code === lunCodes(lun).at(-1);
    // The kernel has asked the target when the writing has ended; what follows is only to make a disk of the unit.
    const unit = await poll(call, last ? foundMs : 0, () => unitOf(session, lun));
    if (!unit) continue;
    const disk = await call.waitingFor(`the disk of LUN ${lun} of ${session.iqn}`, () =>
      poll(call, readyMs, async () => {
        const found = await diskOf(unit);
        return found && found.bytes > 0 ? found : undefined;
      }),
    );
    if (disk) return disk;
    throw new CallError(
      'UNAVAILABLE',
      `LUN ${lun} of ${session.iqn} (${unit.address}) does not become a disk with a size`,
    );
  }
  throw new CallError('NOT_FOUND', `the target ${session.iqn} has no LUN ${lun} for this node`);
}
