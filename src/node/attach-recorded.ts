import { setTimeout } from 'node:timers/promises';
import { type CallContext, reasonOf } from '../core/call.ts';
import { asCallError, CallError } from '../core/errors.ts';
import type { Attacher, Attachment, AttachRequest } from './attachers/attacher.ts';
import { deviceShown } from './device-shown.ts';
import { withLock } from './keyed-lock.ts';
import type { MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { isCleanupUnderWay } from './records/cleanup-turn.ts';
import { mountOf } from './records/leftovers.ts';
import { attachmentKey, recordName } from './records/record-name.ts';
import type { FoundRecord, NewRecord } from './records/records.ts';
import { attacherNamed, attachmentLock, isDetachable, releaseRecorded } from './release.ts';
import { readOnlyAttacher } from './release-read-only.ts';

/** A volume that is wanted at a place: where it is staged, or published without having been staged. */
export interface PlacedRequest extends AttachRequest {
  readonly place: string;
}

/**
 * Attaches a volume with a record of it, written before anything happens, so that it can be taken away whatever happens next. A volume that was
 * at the place before and was not taken away whole is taken away first. Throws FAILED_PRECONDITION when another one is mounted there.
 */
export async function attachRecorded(
  call: CallContext,
  plane: NodePlane,
  name: string,
  attacher: Attacher,
  request: PlacedRequest,
): Promise<Attachment> {
  const record = recordOf(plane, name, attacher, request);
  await clearPlace(call, plane, attacher, request, record);
  const attach = async () => {
    await writeRecord(call, plane, request.table, record);
    return await attacher.attach(call, request);
  };
  try {
    return record.identity ? await withLock(attachmentLock(record), call.signal, attach) : await attach();
  } catch (error) {
    await forgetAttachment(call, plane, name, attacher, request);
    throw error;
  }
}

/** After a failure: where nothing can have been left behind, nothing need be remembered. */
export async function forgetAttachment(
  call: CallContext,
  plane: NodePlane,
  name: string,
  attacher: Attacher,
  request: PlacedRequest,
): Promise<void> {
  const record = recordOf(plane, name, attacher, request);
  if (isDetachable(plane, record) || call.signal.aborted || (await mountOf(call, plane.tools, request.table, record)))
    return;
  await plane.records.remove(recordName(record)).catch(() => {});
}

/** The same after a failure to mount what was attached: what has nothing to detach, such as a share, leaves nothing behind. */
export async function forgetUnmounted(call: CallContext, plane: NodePlane, request: PlacedRequest): Promise<void> {
  const name = request.context.node_attach_driver ?? '';
  const attacher = attacherNamed(plane, name);
  if (!attacher) return;
  const table = await plane.tools.readTable();
  await forgetAttachment(call, plane, name, attacher, { ...request, table });
}

function recordOf(
  { connection }: NodePlane,
  name: string,
  attacher: Attacher,
  { volumeId, place, context, publishContext }: PlacedRequest,
): NewRecord {
  const identity = attacher.identityOf?.({ context, publishContext });
  return { volumeId, attacher: name, identity, place, connection };
}

/** Writes a record before what it tells of is done. Waits for a cleanup that is at work. */
export async function writeRecord(
  call: CallContext,
  { records }: NodePlane,
  table: MountTable,
  record: NewRecord,
): Promise<void> {
  const { folder } = records;
  while (await records.write(call.log, table, record)) {
    if (folder === undefined || !(await isCleanupUnderWay(folder))) return;
    // What it removes may be this very record, so it is written again.
    await call.waitingFor('`switchboard node cleanup` to end', () => sleep(200, call.signal));
  }
}

/** Takes away what was at the place before, as far as that can be told from records. */
async function clearPlace(
  call: CallContext,
  plane: NodePlane,
  attacher: Attacher,
  request: PlacedRequest,
  wanted: NewRecord,
): Promise<void> {
  const { table, place } = request;
  const found = await plane.records.of(table, place).catch((error: unknown) => {
    call.log.warn('whether something was left at the place cannot be told', {
      path: place,
      error: asCallError(error).message,
    });
    return [];
  });
  // A read-only device is one more thing that is there for the same volume.
  const earlier = found.filter(
    ({ name, record }) => name !== recordName(wanted) && record?.attacher !== readOnlyAttacher,
  );
  if (earlier.length === 0) return;
  const mounted = await mountOf(call, plane.tools, table, wanted);
  if (!mounted) {
    for (const one of earlier) await releaseRecorded(call, plane, table, one);
    return;
  }
  // Whether it is what is wanted is then seen by what is mounted. What would be attached in vain must not be attached at all.
  if (!isDetachable(plane, wanted) || !attacher.identify) return;
  const device = await deviceShown(call, plane.tools, table, mounted);
  const identity = device && (await attacher.identify(device));
  if (identity && attachmentKey({ ...wanted, identity }) === attachmentKey(wanted)) return;
  throw new CallError('FAILED_PRECONDITION', `${place} is occupied by ${describe(earlier)}; unstage that first`);
}

function describe([first]: readonly FoundRecord[]): string {
  return first?.record ? `the volume ${first.record.volumeId}` : 'another volume';
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {
    throw reasonOf(signal);
  });
}
