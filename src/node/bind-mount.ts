import { dirname } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { asidePlace, clearAside } from './aside-place.ts';
import { bindsAtOnce } from './binds-at-once.ts';
import { type MountCommand, runMount, runRemount } from './mount-command.ts';
import { bindOptions, mismatch, restrictionsOf } from './mount-options.ts';
import type { MountTable } from './mount-table.ts';
import { makePlace } from './paths.ts';
import type { NodeTools } from './tools.ts';
import type { Wanted, WantedOptions } from './wanted.ts';

export interface BindMount extends WantedOptions {
  readonly source: string;
  readonly place: string;
  readonly on: Wanted['on'];
  /** Options of the mount that shows the source, as far as they are to be kept. */
  readonly inherited: readonly string[];
  /** Make it writable, and the file system below, when the source is read-only. */
  readonly lift?: boolean | undefined;
}

/** Whether what is mounted at `place` is mounted in other mount namespaces too, or in other places of this one: mount_namespaces(7). */
export function isPropagated(table: MountTable, place: string): boolean {
  return table.covering(dirname(place))?.peerGroup !== undefined;
}

/**
 * Mounts `source` at `place` with the options that are wanted, in all mount namespaces that see the place. mount(2) cannot set options of a bind
 * mount: mount(8) changes them afterwards, and such changes are not propagated. What is mounted has the options of the mount that it shows,
 * however, and so do its copies everywhere: so where they are propagated, it is first made aside, with its options, and then shown at `place`.
 * `table` is as it was a moment before. Throws FAILED_PRECONDITION when the mount program does not set the options.
 */
export async function bindMount(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  bind: BindMount,
): Promise<void> {
  const { source, place, lift } = bind;
  const command = { source, place, options: isInherited(bind) ? ['bind'] : ownOptions(bind) };
  const later = command.options.length > 1 || lift;
  if (later && isPropagated(table, place) && (lift || !(await bindsAtOnce(call, tools, command)))) {
    return await byWayOfAside(call, tools, table, bind, command);
  }
  await runMount(call, tools, command);
  if (lift) await runRemount(call, tools, place, ['rw']);
}

async function byWayOfAside(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  bind: BindMount,
  command: MountCommand,
): Promise<void> {
  const { place, on, lift } = bind;
  const aside = asidePlace(place);
  await clearAside(call, tools, table, place);
  await makePlace(aside, on);
  try {
    await runMount(call, tools, { ...command, place: aside });
    if (lift) await runRemount(call, tools, aside, ['rw']);
    await checkOptions(call, tools, aside, bind);
    await runMount(call, tools, { source: aside, place, options: ['bind'] });
  } catch (error) {
    // The first error tells more. What cannot be cleared now is cleared by the next call for this place.
    await clearNow(call, tools, place).catch(() => {});
    throw error;
  }
  await clearNow(call, tools, place);
}

async function clearNow(call: CallContext, tools: NodeTools, place: string): Promise<void> {
  await clearAside(call, tools, await tools.readTable(), place);
}

/** Some mount programs leave out options that they cannot set together with a bind. */
async function checkOptions(call: CallContext, tools: NodeTools, aside: string, bind: BindMount): Promise<void> {
  const problem = await problemAt(tools, aside, bind);
  if (!problem) return;
  await runRemount(call, tools, aside, ownOptions(bind));
  const still = await problemAt(tools, aside, bind);
  if (still) {
    throw new CallError('FAILED_PRECONDITION', `${bind.source} cannot be mounted at ${bind.place} as wanted: ${still}`);
  }
}

async function problemAt(tools: NodeTools, aside: string, bind: BindMount): Promise<string | undefined> {
  const mount = (await tools.readTable()).at(aside);
  return mount ? mismatch(mount, bind) : `nothing is mounted at ${aside} on the way`;
}

function ownOptions({ inherited, flags, readonly }: BindMount): readonly string[] {
  return bindOptions({ options: inherited }, flags, readonly);
}

/** Whether the source has all options that are wanted, so that a plain bind mount of it has them too. */
function isInherited({ inherited, flags, readonly }: BindMount): boolean {
  return [...restrictionsOf([...flags, ...(readonly ? ['ro'] : [])])].every((option) => inherited.includes(option));
}
