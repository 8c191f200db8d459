/** Unmounting for certain: busy is an error, dead servers are detached, whatever is stacked comes off. */
import { setTimeout } from 'node:timers/promises';
import { CommandFailed } from '../backends/exec/command-failed.ts';
import { type CallContext, reasonOf } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { mayHang } from './file-system-kind.ts';
import { findHolders } from './holders.ts';
import { isWithin, type Mount, type MountTable } from './mount-table.ts';
import { servers } from './servers.ts';
import { serverOf } from './share-source.ts';
import type { NodeTools } from './tools.ts';

/** Pauses in milliseconds between attempts on a mount that is busy: a container that just ended lets go within moments. */
const busyPauses = [50, 100, 200, 400, 800, 1600];

/** Milliseconds for a detachment: it takes effect at once. */
const detachLimit = 5000;

/**
 * Takes off everything mounted at a place, as `table` has it, and gives the table after it. Throws FAILED_PRECONDITION while it is in use,
 * naming the processes that hold it.
 */
export async function unmountAll(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  place: string,
): Promise<MountTable> {
  let current = table;
  // Only so often: somebody who mounts as fast as this unmounts must not keep it going for ever.
  for (let left = table.stackAt(place).length + 2; left > 0; left--) {
    const top = current.at(place);
    if (!top) return current;
    await unmount(call, tools, current, top);
    // What is removed next would refuse to go if something else had been mounted here meanwhile.
    current = current.stackAt(place).length > 1 ? await tools.readTable() : current.without(top);
  }
  throw new CallError('ABORTED', `${place} is mounted again and again while it is being unmounted`);
}

/** Detaches a mount that is known to be dead: it is gone from the tree at once, and for the kernel when the last user lets go. */
export async function detachMount(call: CallContext, tools: NodeTools, mount: Mount): Promise<void> {
  // Not by force: that would end, with an error, what others have written to the same server and have not got an answer for.
  const timeoutMs = Math.min(tools.limits.mount, detachLimit);
  try {
    await ignoringNotMounted(() => umount(call, tools, ['-l', ...carefully(mount), mount.mountPoint], timeoutMs));
  } catch (error) {
    // What takes its time, when this was the last mount of its file system, is to take leave of the server.
    const late = error instanceof CallError && error.code === 'DEADLINE_EXCEEDED' && !call.signal.aborted;
    if (
      !late ||
      (await tools.readTable()).mounts.some(({ id, source }) => id === mount.id && source === mount.source)
    ) {
      throw error;
    }
  }
}

async function unmount(call: CallContext, tools: NodeTools, table: MountTable, mount: Mount): Promise<void> {
  const remote = mayHang(mount);
  const server = serverOf(mount);
  if (server !== undefined && servers.isSilent(server)) return await detachSilent(call, tools, mount);
  const args = [...carefully(mount), mount.mountPoint];
  for (const pause of [...busyPauses, undefined]) {
    try {
      return await ignoringNotMounted(() => umount(call, tools, args));
    } catch (error) {
      if (remote && isDeadServer(error) && !call.signal.aborted) {
        return await detachSilent(call, tools, mount);
      }
      if (!(error instanceof CommandFailed) || !/busy/i.test(error.stderr)) throw error;
      if (pause === undefined) throw await inUse(table, mount);
      await call.waitingFor(`users of ${mount.mountPoint} to let go`, () => sleep(pause, call.signal));
    }
  }
}

async function detachSilent(call: CallContext, tools: NodeTools, mount: Mount): Promise<void> {
  call.log.warn('detaching a mount whose server does not answer', { source: mount.source, path: mount.mountPoint });
  await detachMount(call, tools, mount);
}

/**
 * Without looking at the path, which would wait for a server that does not answer (`-c`), and without the helper of shares, which would want to
 * tell the server too (`-i`).
 */
function carefully(mount: Mount): readonly string[] {
  if (serverOf(mount) !== undefined) return ['-i', '-c'];
  return mayHang(mount) ? ['-c'] : [];
}

function umount(
  call: CallContext,
  tools: NodeTools,
  args: readonly string[],
  timeoutMs = tools.limits.mount,
): Promise<unknown> {
  return call.waitingFor(`\`umount\` of ${args.at(-1)}`, () => tools.run(call, { program: 'umount', args, timeoutMs }));
}

async function ignoringNotMounted(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // Somebody else unmounted it meanwhile. The table that is read next tells.
    if (!(error instanceof CommandFailed) || !/not mounted|no mount point/i.test(error.stderr)) throw error;
  }
}

function isDeadServer(error: unknown): boolean {
  if (error instanceof CommandFailed) return /stale|not responding|not connected|input\/output/i.test(error.stderr);
  return error instanceof CallError && error.code === 'DEADLINE_EXCEEDED';
}

async function inUse(table: MountTable, mount: Mount): Promise<CallError> {
  const path = mount.mountPoint;
  const below = table.mounts.filter((one) => one.parentId === mount.id && isWithin(one.mountPoint, path));
  const nested = below.slice(0, 3).map((one) => `a mount at ${one.mountPoint}`);
  const holders = [...nested, ...(await findHolders(path))];
  const by = holders.length > 0 ? ` by ${holders.join(', ')}` : '';
  return new CallError('FAILED_PRECONDITION', `${path} is in use${by}; it stays mounted until that ends`);
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {
    throw reasonOf(signal);
  });
}
