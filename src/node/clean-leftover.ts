import { isDeepStrictEqual } from 'node:util';
import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import type { MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { findLeftovers, type Leftover, mountOf } from './records/leftovers.ts';
import type { StagedRecord } from './records/record.ts';
import { unstageVolume } from './unstage.ts';
import { showsSame } from './wanted.ts';

/**
 * Takes away what a leftover's record tells of, as unstaging would, and the record. The caller has the turn (records/cleanup-turn.ts). It is looked
 * at again first: throws ABORTED when it is in use again, UNAVAILABLE when that cannot be found out, FAILED_PRECONDITION when it cannot be taken away now. What
 * is gone already is success.
 */
export async function cleanLeftover(call: CallContext, plane: NodePlane, leftover: Leftover): Promise<void> {
  const { records, tools } = plane;
  const table = await tools.readTable();
  const found = (await records.all(table)).find(({ name }) => name === leftover.name);
  if (!found) return;
  const look = { table, bootId: await records.bootId(), now: Date.now(), deadMounts: leftover.kind === 'dead' };
  const [again] = await findLeftovers(call, tools, [found], look);
  if (again?.kind === 'unknown') throw new CallError('UNAVAILABLE', again.why);
  if (!again || again.kind !== leftover.kind || !isDeepStrictEqual(again.record, leftover.record)) {
    throw new CallError('ABORTED', 'it has changed since it was listed');
  }
  if (!again.record) return await records.remove(again.name);
  if (again.underWay)
    throw new CallError('ABORTED', 'it may be being staged at this moment; look again in ten minutes');
  if (again.kind === 'dead') await refusePublished(call, plane, table, again.record);
  await unstageVolume(call, plane, { volumeId: again.record.volumeId, stagingPath: again.record.place });
  const left = await records.all(table);
  if (!left.some(({ name }) => name === again.name)) return;
  throw new CallError('FAILED_PRECONDITION', `nothing here can detach it: there is no "${again.record.attacher}"`);
}

/** Whoever uses it may still wait for its server to come back. */
async function refusePublished(
  call: CallContext,
  { tools }: NodePlane,
  table: MountTable,
  record: StagedRecord,
): Promise<void> {
  const mount = await mountOf(call, tools, table, record);
  const other = mount && table.mounts.find((one) => one !== mount && showsSame(one, mount));
  if (other) throw new CallError('FAILED_PRECONDITION', `it is published at ${other.mountPoint}`);
}
