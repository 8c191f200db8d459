import type { CallContext } from '../../../core/call.ts';
import { multipathOf } from '../../multipath.ts';
import { diskOf, type ScsiDisk, unitsBelow } from '../../scsi-disk.ts';
import type { NodeTools } from '../../tools.ts';
import { type RefuseInUse, whyUsed } from '../../why-used.ts';
import type { IscsiSession } from './session.ts';

export interface UsedDisk {
  readonly disk: ScsiDisk;
  readonly session: IscsiSession;
  /** For people. */
  readonly why: string;
}

/** The disks of a LUN that sessions have, whether they are live or not. */
export async function disksOf(
  sessions: readonly IscsiSession[],
  lun: number,
): Promise<readonly Omit<UsedDisk, 'why'>[]> {
  const found = sessions.map(async (session) => {
    const units = (await unitsBelow(session.directory)).filter((unit) => unit.lun === lun);
    const disks = await Promise.all(units.map(diskOf));
    return disks.flatMap((disk) => (disk ? [{ disk, session }] : []));
  });
  return (await Promise.all(found)).flat();
}

/** The disks of a LUN that somebody uses as they are. Those that multipath joins are used by it alone. */
export async function disksInUse(
  call: CallContext,
  tools: NodeTools,
  sessions: readonly IscsiSession[],
  lun: number,
  refuseInUse: RefuseInUse,
): Promise<readonly UsedDisk[]> {
  const { sysfs = '/sys' } = tools;
  const used: UsedDisk[] = [];
  for (const { disk, session } of await disksOf(sessions, lun)) {
    if (await multipathOf(sysfs, [disk.name])) continue;
    const why = await whyUsed(call, tools, disk, refuseInUse);
    if (why !== undefined) used.push({ disk, session, why });
  }
  return used;
}
