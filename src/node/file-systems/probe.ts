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
    const data = await firstData(call, tools, device, offset, Math.min(edge, size));
    if (data !== undefined) throw refusal(device, `has data that no tool knows at byte ${data}`);
  }
  return { is: 'blank' };
}

function refusal(device: BlockDevice, why: string): CallError {
  return new CallError(
    'FAILED_PRECONDITION',
    `refusing to format or mount ${device.path}: it ${why}; if that is of no worth, such as what is left of a formatting that was cut off, wipe its first and last MiB`,
  );
}

/** Where the first bytes that are not zero are, to 4 KiB. Undefined: all are. Throws UNAVAILABLE when not all could be read. */
async function firstData(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  offset: number,
  length: number,
): Promise<number | undefined> {
  // od prints equal lines once, so this is three lines for zeros. It reads a line at a time: they had better be long.
  const args = ['-Ad', '-tx8', '-w4096', '-j', String(offset), '-N', String(length)];
  const lines = (await dump(call, tools, device, args)).trimEnd().split('\n');
  const data = lines.find((line) => !/^\*?$|^\d+[ 0]*$/.test(line));
  if (data !== undefined) return Number.parseInt(data, 10);
  // The last line is where it came to. A device that loses its size meanwhile, as one does whose server is lost, has an early end.
  const end = Number(lines.at(-1) || offset);
  if (end !== offset + length) throw unreadable(device, `it ends at byte ${end}`);
  return undefined;
}

/** Bytes of a device, read by a child: a dead disk can hold a reader for ever. */
export async function readDevice(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  offset: number,
  length: number,
): Promise<Buffer> {
  const text = await dump(call, tools, device, ['-An', '-v', '-tx1', '-j', String(offset), '-N', String(length)]);
  return Buffer.from(text.replace(/\s+/g, ''), 'hex');
}

async function dump(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  args: readonly string[],
): Promise<string> {
  try {
    const command = { program: 'od', args: [...args, device.path], timeoutMs: tools.limits.mount };
    const { stdout } = await tools.run(call, command);
    return stdout;
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw unreadable(device, error.stderr, error);
  }
}

function unreadable(device: BlockDevice, why: string, cause?: unknown): CallError {
  return new CallError('UNAVAILABLE', `${device.path} cannot be read: ${why}`, { cause });
}
