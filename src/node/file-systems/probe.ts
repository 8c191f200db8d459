/** What is on a block device, read from the device itself: udev's or lsblk's memory of it may be empty where the device is not. */
import { CommandFailed } from '../../backends/exec/command-failed.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { deviceHolders, deviceSize } from '../devices.ts';
import type { NodeTools } from '../tools.ts';

export interface BlockDevice {
  readonly path: string;
  /** `major:minor` */
  readonly number: string;
}

/** Blank means proven: no known signature, and nothing but zeros where signatures and partition tables are. */
export type Content = { readonly is: 'blank' } | { readonly is: 'file system'; readonly type: string };

const edge = 2 ** 20;

/** Throws FAILED_PRECONDITION for a device that holds something else than a file system, or that cannot be read for certain. */
export async function probeDevice(call: CallContext, tools: NodeTools, device: BlockDevice): Promise<Content> {
  const holders = await deviceHolders(device.number);
  if (holders.length > 0) throw refusal(device, `is in use by ${holders.join(', ')}`);
  const size = await deviceSize(device.number);
  if (!size) throw new CallError('FAILED_PRECONDITION', `${device.path} has no medium or is gone`);

  const { code, stdout } = await tools.run(call, {
    program: 'blkid',
    args: ['-p', '-o', 'export', '-u', 'filesystem,raid,crypto,other', device.path],
    timeoutMs: tools.limits.mount,
    // 2: nothing was found, or the device could not be read. 8: signatures contradict each other.
    accept: [0, 2, 8],
  });
  if (code === 8) throw refusal(device, 'holds signatures that contradict each other');
  const found = new Map(stdout.split('\n').map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]));
  const type = found.get('TYPE');
  if (type) {
    // For blkid, a disk of a ZFS pool is a file system, too; nothing can mount it.
    const isMember = type.endsWith('_member');
    if (found.get('USAGE') === 'filesystem' && !isMember) return { is: 'file system', type };
    throw refusal(device, `holds ${type}`);
  }
  const table = found.get('PTTYPE');
  if (code === 0) throw refusal(device, table ? `has a partition table (${table})` : 'holds something unknown');
  for (const offset of new Set([0, Math.max(0, size - edge)])) {
    if (!(await isZero(call, tools, device, offset, Math.min(edge, size)))) {
      throw refusal(device, `has data at ${offset === 0 ? 'its beginning' : 'its end'} that no tool knows`);
    }
  }
  return { is: 'blank' };
}

function refusal(device: BlockDevice, why: string): CallError {
  return new CallError(
    'FAILED_PRECONDITION',
    `refusing to format or mount ${device.path}: it ${why}; if that is of no worth, wipe its first and last MiB`,
  );
}

async function isZero(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  offset: number,
  length: number,
): Promise<boolean> {
  // od prints equal lines once, so this is two lines for zeros, and any other answer is a no. It reads a line at a time: they had better be long.
  const text = await dump(call, tools, device, ['-tx8', '-w4096', '-j', String(offset), '-N', String(length)]);
  return /^[\s0*]+$/.test(text) && text.includes('0');
}

/** Bytes of a device, read by a child: a dead disk can hold a reader for ever. */
export async function readDevice(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  offset: number,
  length: number,
): Promise<Buffer> {
  const text = await dump(call, tools, device, ['-v', '-tx1', '-j', String(offset), '-N', String(length)]);
  return Buffer.from(text.replace(/\s+/g, ''), 'hex');
}

async function dump(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  args: readonly string[],
): Promise<string> {
  try {
    const command = { program: 'od', args: ['-An', ...args, device.path], timeoutMs: tools.limits.mount };
    const { stdout } = await tools.run(call, command);
    return stdout;
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw new CallError('UNAVAILABLE', `${device.path} cannot be read: ${error.stderr}`, { cause: error });
  }
}
