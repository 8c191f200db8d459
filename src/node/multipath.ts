/** Disks with several paths that the kernel's device mapper joins to one: dm-multipath, whose maps `multipathd` makes. */
import { readdir, readFile } from 'node:fs/promises';
import { CommandFailed } from '../backends/exec/command-failed.ts';
import { type CallContext, throwIfOver } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { poll } from './poll.ts';
import type { NodeTools } from './tools.ts';

export interface MultipathMap {
  /** As dmsetup(8) and multipath(8) call it. */
  readonly name: string;
  /** The kernel's name: `dm-0`. */
  readonly device: string;
  /** `major:minor` */
  readonly number: string;
  /** The disk's identifier as multipath has it: `3600140…`. */
  readonly wwid: string;
  /** Kernel names of the disks below it. */
  readonly paths: readonly string[];
}

/** Milliseconds until multipathd, which learns of disks from udev, has joined them by itself; and until it has after being told to. */
const ownAccordMs = 1000;
const whenToldMs = 10_000;
const timesTold = 5;

/** The map that one of these disks (kernel names) is below, or that is one of them. Reads sysfs only. */
export async function multipathOf(sysfs: string, disks: readonly string[]): Promise<MultipathMap | undefined> {
  for (const disk of disks) {
    const holders = await readdir(`${sysfs}/class/block/${disk}/holders`).catch(() => []);
    for (const device of [disk, ...holders]) {
      const map = device.startsWith('dm-') ? await readMap(sysfs, device) : undefined;
      if (map) return map;
    }
  }
  return undefined;
}

async function readMap(sysfs: string, device: string): Promise<MultipathMap | undefined> {
  const directory = `${sysfs}/class/block/${device}`;
  const read = async (file: string) => (await readFile(`${directory}/${file}`, 'utf8').catch(() => '')).trim();
  const uuid = await read('dm/uuid');
  if (!uuid.startsWith('mpath-')) return undefined;
  const [name, number, paths] = await Promise.all([
    read('dm/name'),
    read('dev'),
    readdir(`${directory}/slaves`).catch(() => []),
  ]);
  return { name, device, number, wwid: uuid.slice('mpath-'.length), paths: paths.toSorted() };
}

/** Whether multipathd runs where host programs do. One command. */
export async function isMultipathed(call: CallContext, tools: NodeTools): Promise<boolean> {
  try {
    await tools.run(call, { program: 'multipathd', args: ['show', 'daemon'], timeoutMs: tools.limits.iscsi });
    return true;
  } catch {
    throwIfOver(call.signal);
    return false;
  }
}

/**
 * The map above the disks, all of which are one: waits for multipathd, and tells it to make one where its settings would not. `wwid` is as
 * multipath has it. Throws FAILED_PRECONDITION when there is none.
 */
export async function awaitMultipath(
  call: CallContext,
  tools: NodeTools,
  disks: readonly string[],
  wwid: string,
): Promise<MultipathMap> {
  const { sysfs = '/sys' } = tools;
  const whole = async () => {
    const map = await multipathOf(sysfs, disks);
    return map && disks.every((disk) => map.paths.includes(disk)) ? map : undefined;
  };
  const made = await poll(call, ownAccordMs, whole);
  if (made) return made;
  let said = '';
  // What it does not know yet, or has not forgotten yet, it does when it is told again.
  for (let times = 0; times < timesTold && !(await multipathOf(sysfs, disks)); times++) {
    said = await addMap(call, tools, wwid);
    await poll(call, whenToldMs / timesTold, whole);
  }
  const map = (await poll(call, whenToldMs, whole)) ?? (await multipathOf(sysfs, disks));
  if (!map) throw noMap(disks, wwid, `it says ${JSON.stringify(said)}`);
  const missing = disks.filter((disk) => !map.paths.includes(disk));
  if (missing.length > 0)
    call.log.warn('disks are not among the paths of their map', { map: map.name, disks: missing });
  return map;
}

async function addMap(call: CallContext, tools: NodeTools, wwid: string): Promise<string> {
  const args = ['add', 'map', wwid];
  const { stdout } = await call.waitingFor(`\`multipathd add map ${wwid}\``, () =>
    tools.run(call, { program: 'multipathd', args, timeoutMs: tools.limits.iscsi, accept: [0, 1] }),
  );
  // Its exit code says little; what counts is the map.
  return stdout.trim();
}

function noMap(disks: readonly string[], wwid: string, why: string): CallError {
  return new CallError(
    'FAILED_PRECONDITION',
    `multipathd runs, but has no map of ${disks.join(' and ')} (${wwid}): ${why}; see \`multipath -v3 ${disks[0]}\`, it may be blacklisted`,
  );
}

/** Removes a map that nobody uses; its paths stay. Gone already: success. Throws FAILED_PRECONDITION while it is in use. */
export async function flushMultipath(call: CallContext, tools: NodeTools, map: MultipathMap): Promise<void> {
  const { sysfs = '/sys' } = tools;
  try {
    await call.waitingFor(`\`multipath -f ${map.name}\``, () =>
      tools.run(call, { program: 'multipath', args: ['-f', map.name], timeoutMs: tools.limits.iscsi }),
    );
  } catch (error) {
    throwIfOver(call.signal);
    if (!(error instanceof CommandFailed)) throw error;
    if (!(await readMap(sysfs, map.device))) return;
    const why = /in use/i.test(error.stderr) ? 'it is in use' : error.stderr;
    throw new CallError('FAILED_PRECONDITION', `the multipath map ${map.name} cannot be removed: ${why}`, {
      cause: error,
    });
  }
}

/** Makes a map as large as its paths are now, which have `bytes`. Throws FAILED_PRECONDITION when it stays smaller. */
export async function resizeMultipath(
  call: CallContext,
  tools: NodeTools,
  map: MultipathMap,
  bytes: number,
): Promise<void> {
  const { sysfs = '/sys' } = tools;
  const isGrown = async () => {
    const sectors = await readFile(`${sysfs}/class/block/${map.device}/size`, 'utf8').catch(() => '0');
    return Number(sectors) * 512 >= bytes || undefined;
  };
  if (await isGrown()) return;
  const args = ['resize', 'map', map.name];
  const { stdout } = await call.waitingFor(`\`multipathd resize map ${map.name}\``, () =>
    tools.run(call, { program: 'multipathd', args, timeoutMs: tools.limits.iscsi, accept: [0, 1] }),
  );
  if (await poll(call, whenToldMs, isGrown)) return;
  const said = stdout.trim();
  throw new CallError(
    'FAILED_PRECONDITION',
    `the multipath map ${map.name} does not take the new size of its paths${said ? `: multipathd says ${said}` : ''}`,
  );
}
