import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { clearAside } from './aside-place.ts';
import { isPropagated } from './bind-mount.ts';
import { whyDead } from './dead-mount.ts';
import { mayHang } from './file-system-kind.ts';
import { runRemount } from './mount-command.ts';
import { bindOptions, mismatch } from './mount-options.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { makePlace, removePlace } from './paths.ts';
import { noteAlive } from './proven-alive.ts';
import type { NodeTools } from './tools.ts';
import { detachMount, unmountAll } from './unmount.ts';
import type { Wanted } from './wanted.ts';

/**
 * Makes sure that `wanted` is mounted at `place` (from {@link preparePlace}) and nothing else is; gives the mount. Repeated: success. A dead
 * mount in its way is detached. Throws FAILED_PRECONDITION when something else is mounted there, ALREADY_EXISTS when it is mounted there with
 * other options.
 */
export async function ensureMounted(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  wanted: Wanted,
  place: string,
): Promise<Mount> {
  const clear = isPropagated(table, place) ? await clearAside(call, tools, table, place) : table;
  const cleared = await clearDead(call, tools, clear, wanted, place);
  const existing = cleared.at(place);
  if (!existing) return await mountThere(call, tools, cleared, wanted, place);
  if (!wanted.matches(existing)) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${place} is occupied by a mount of ${describe(existing)}, not ${wanted.title}`,
    );
  }
  const problem = mismatch(existing, wanted);
  if (problem) {
    throw new CallError(
      'ALREADY_EXISTS',
      `${wanted.title} is mounted at ${place} already with other options: ${problem}`,
    );
  }
  return existing;
}

/** Detaches mounts at `place` that are dead, and gives the table after that. */
async function clearDead(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  wanted: Wanted,
  place: string,
): Promise<MountTable> {
  let current = table;
  for (let left = table.stackAt(place).length; left > 0; left--) {
    const top = current.at(place);
    const why = top && (await whyInTheWay(call, tools, wanted, top));
    if (!top || why === undefined) return current;
    call.log.warn('detaching a dead mount', { path: place, source: top.source, why });
    await detachMount(call, tools, top);
    current = await tools.readTable();
  }
  return current;
}

/** What is wanted and has a server that does not answer is as good as it can be. Anything else that does not answer is of no use here. */
async function whyInTheWay(
  call: CallContext,
  tools: NodeTools,
  wanted: Wanted,
  mount: Mount,
): Promise<string | undefined> {
  try {
    return await whyDead(call, tools, mount);
  } catch (error) {
    const silent = error instanceof CallError && error.code === 'UNAVAILABLE' && !call.signal.aborted;
    if (!silent || wanted.matches(mount)) throw error;
    return error.message;
  }
}

async function mountThere(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  wanted: Wanted,
  place: string,
): Promise<Mount> {
  const made = await makePlace(place, wanted.on);
  try {
    await wanted.mount(call, table, place);
  } catch (error) {
    // Does nothing when the mount came to be after all: what is mounted upon cannot be removed.
    if (made) await removePlace(place).catch(() => {});
    throw error;
  }
  const mount = await verify(call, tools, wanted, place);
  if (mayHang(mount)) noteAlive(mount);
  return mount;
}

/** Trusts the mount table, not the exit code: some mount programs leave out options that they cannot set together with a bind. */
async function verify(call: CallContext, tools: NodeTools, wanted: Wanted, place: string): Promise<Mount> {
  let table = await tools.readTable();
  let mount = table.at(place);
  // A change of what is propagated already would leave its copies as they are.
  if (mount && wanted.inherited && !isPropagated(table, place) && mismatch(mount, wanted)) {
    await runRemount(call, tools, place, bindOptions({ options: wanted.inherited }, wanted.flags, wanted.readonly));
    table = await tools.readTable();
    mount = table.at(place);
  }
  if (!mount)
    throw new CallError('INTERNAL', `\`mount\` of ${wanted.title} succeeded, but nothing is mounted at ${place}`);
  const problem = wanted.matches(mount) ? mismatch(mount, wanted) : `it shows ${describe(mount)}`;
  if (!problem) return mount;
  await unmountAll(call, tools, table, place);
  await removePlace(place);
  throw new CallError('FAILED_PRECONDITION', `${wanted.title} cannot be mounted at ${place} as wanted: ${problem}`);
}

function describe(mount: Mount): string {
  return mount.root === '/' ? mount.source : `${mount.source}[${mount.root}]`;
}
