import type { CallContext } from '../core/call.ts';
import type { Attacher, Identity } from './attachers/attacher.ts';
import { refuseInUse } from './device-in-use.ts';
import { refuseOpen } from './device-users.ts';
import { deviceHolders, deviceName } from './devices.ts';
import { withLock } from './keyed-lock.ts';
import type { MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { attachmentKey, type RecordSubject } from './records/record-name.ts';
import type { FoundRecord } from './records/records.ts';
import { readOnlyAttacher, releaseReadOnly, releaseUnshown } from './release-read-only.ts';
import { namesIn } from './sysfs.ts';

/** The key of the lock that attaching and detaching one volume take. */
export function attachmentLock(subject: Omit<RecordSubject, 'place'>): string {
  return `attachment ${attachmentKey(subject)}`;
}

/** Whether there is something to detach. */
export function isDetachable(plane: NodePlane, subject: Omit<RecordSubject, 'place'>): boolean {
  return subject.identity !== undefined && attacherNamed(plane, subject.attacher)?.detach !== undefined;
}

export function attacherNamed(plane: NodePlane, name: string): Attacher | undefined {
  return Object.hasOwn(plane.attachers, name) ? plane.attachers[name] : undefined;
}

/**
 * Detaches what a record tells of, unless the same volume is at another place too, and removes the record. What cannot be known from the
 * record is left alone, with the record. `mounted`: the device that was mounted at the place, if one was. Throws FAILED_PRECONDITION while the
 * device is in use by anybody; nothing has happened then.
 */
export async function releaseRecorded(
  call: CallContext,
  plane: NodePlane,
  table: MountTable,
  { name, record, unreadable }: FoundRecord,
  mounted?: string | undefined,
): Promise<void> {
  const { records } = plane;
  if (record?.attacher === readOnlyAttacher) {
    await releaseReadOnly(call, plane, record.place);
    return await records.remove(name);
  }
  const left = unreadable ?? (attacherNamed(plane, record.attacher) ? undefined : `there is no "${record.attacher}"`);
  if (!record || left !== undefined) {
    call.log.warn('what a record of a staged volume tells cannot be used, so nothing was detached', {
      file: records.folder && `${records.folder}/${name}`,
      problem: left,
      todo: 'see `switchboard doctor`',
    });
    return;
  }
  await withLock(attachmentLock(record), call.signal, async () => {
    if (isDetachable(plane, record)) await detach(call, plane, table, record, mounted);
    // Within the lock: of two places that are given up at once, the second one must see that it is the last.
    await records.remove(name);
  });
}

/** The same for a volume without a record: staged by another program, or where no record could be kept. */
export async function releaseUnrecorded(
  call: CallContext,
  plane: NodePlane,
  table: MountTable,
  subject: RecordSubject,
  mounted: string,
): Promise<void> {
  await withLock(attachmentLock(subject), call.signal, () => detach(call, plane, table, subject, mounted));
}

async function detach(
  call: CallContext,
  plane: NodePlane,
  table: MountTable,
  subject: RecordSubject,
  mounted: string | undefined,
): Promise<void> {
  const attacher = attacherNamed(plane, subject.attacher);
  if (!attacher || !subject.identity || (await plane.records.isElsewhere(table, subject))) return;
  for (const device of await devicesOf(attacher, subject, mounted)) {
    await releaseUnshown(call, plane, table, device);
    await refuseInUse(call, device, plane.tools);
    await refuseOpen(call, device, plane.tools);
  }
  await attacher.detach?.(call, subject.identity, () => othersOf(plane, table, subject));
}

/** What else the attacher has, or is just getting, on this node. */
async function othersOf(plane: NodePlane, table: MountTable, subject: RecordSubject): Promise<readonly Identity[]> {
  const key = attachmentKey(subject);
  const records = (await plane.records.all(table)).flatMap(({ record }) => record ?? []);
  const others = records.filter(({ attacher }) => attacher === subject.attacher);
  return others.flatMap((one) => (one.identity && attachmentKey(one) !== key ? [one.identity] : []));
}

/** The devices that a volume is on this node. One that is mounted is the one: those below it are its parts. */
async function devicesOf(
  attacher: Attacher,
  subject: RecordSubject,
  mounted: string | undefined,
): Promise<readonly string[]> {
  const key = attachmentKey(subject);
  const isIt = async (device: string) => {
    const identity: Identity | undefined = await attacher.identify?.(device);
    return identity !== undefined && attachmentKey({ attacher: subject.attacher, identity }) === key;
  };
  if (mounted !== undefined && (await isIt(mounted))) return [mounted];
  if (!attacher.identify) return [];
  const found: string[] = [];
  for (const device of await namesIn('/sys/dev/block')) if (await isIt(device)) found.push(device);
  const names = await Promise.all(found.map(deviceName));
  // Paths of a multipath device are held by it alone, and it is looked at itself.
  const isPart = async (device: string) => {
    const holders = await deviceHolders(device);
    return holders.length > 0 && holders.every((holder) => names.includes(holder));
  };
  const parts = await Promise.all(found.map(isPart));
  return found.filter((_device, index) => !parts[index]);
}
