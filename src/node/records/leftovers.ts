/** Records of volumes that are not there any more as they were: what a crash, a reboot or a server that went away left behind. */
import { join } from 'node:path/posix';
import type { CallContext } from '../../core/call.ts';
import { asCallError } from '../../core/errors.ts';
import { blockFile } from '../block-file.ts';
import { whyDead } from '../dead-mount.ts';
import type { Mount, MountTable } from '../mount-table.ts';
import { lifeOf } from '../owner.ts';
import { resolvePlace } from '../paths.ts';
import type { NodeTools } from '../tools.ts';
import type { StagedRecord } from './record.ts';
import type { FoundRecord } from './records.ts';

export type Leftover = {
  /** The record's file. */
  readonly name: string;
  /** For people. */
  readonly why: string;
} & (
  | { readonly kind: 'unreadable'; readonly record?: undefined }
  | {
      /**
       * `not mounted`: it may still be attached. `dead`: it is mounted, but nothing can be done with it. `unknown`: whether it is in use cannot be
       * found out, because a server does not answer; then it is left alone.
       */
      readonly kind: 'not mounted' | 'dead' | 'unknown';
      readonly record: StagedRecord;
      /** A call that runs at this moment may be about to mount it. */
      readonly underWay: boolean;
    }
);

export interface LookFor {
  readonly table: MountTable;
  readonly bootId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether mounts are asked for a sign of life. That may take as long as the time limit of mounts. */
  readonly deadMounts: boolean;
}

/** Milliseconds that a call may be at work between writing a record and mounting: the limit of node calls. */
const longestCallMs = 10 * 60_000;

/** How many mounts are asked at once. */
const atOnce = 8;

/** Those of the records whose volume is left over, or may be. What is in use is not. Never rejects: each is judged by itself. */
export async function findLeftovers(
  call: CallContext,
  tools: NodeTools,
  found: readonly FoundRecord[],
  look: LookFor,
): Promise<readonly Leftover[]> {
  const leftovers: Leftover[] = [];
  for (let next = 0; next < found.length; next += atOnce) {
    const some = found.slice(next, next + atOnce);
    const judged = await Promise.all(some.map((one) => judge(call, tools, one, look)));
    leftovers.push(...judged.flatMap((one) => one ?? []));
  }
  return leftovers;
}

async function judge(
  call: CallContext,
  tools: NodeTools,
  { name, record, unreadable }: FoundRecord,
  look: LookFor,
): Promise<Leftover | undefined> {
  if (!record) return { name, kind: 'unreadable', why: unreadable };
  try {
    return await judgeRecord(call, tools, name, record, look);
  } catch (error) {
    return { name, kind: 'unknown', record, why: asCallError(error).message, underWay: false };
  }
}

async function judgeRecord(
  call: CallContext,
  tools: NodeTools,
  name: string,
  record: StagedRecord,
  look: LookFor,
): Promise<Leftover | undefined> {
  const mount = await mountOf(call, tools, look.table, record);
  if (!mount) {
    const before = record.bootId !== look.bootId;
    const why = before ? 'the machine was started anew since it was mounted' : 'nothing is mounted there';
    return { name, kind: 'not mounted', record, why, underWay: !before && (await mayBeUnderWay(record, look.now)) };
  }
  const why = look.deadMounts ? await whyDead(call, tools, mount) : undefined;
  return why === undefined ? undefined : { name, kind: 'dead', record, why, underWay: false };
}

/** What is mounted at the place of a record. */
export async function mountOf(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  { place }: Pick<StagedRecord, 'place'>,
): Promise<Mount | undefined> {
  const resolved = await resolvePlace(call, tools, table, place);
  return resolved === undefined ? undefined : (table.at(resolved) ?? table.at(join(resolved, blockFile)));
}

async function mayBeUnderWay({ at, owner }: StagedRecord, now: number): Promise<boolean> {
  return now - at < longestCallMs && (await lifeOf(owner)) !== 'dead';
}
