import { stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { deviceNumber } from './device-number.ts';
import { poll } from './poll.ts';
import type { NodeTools } from './tools.ts';

/** Milliseconds in which the kernel makes the node of a device that is there. */
const patienceMs = 2000;

/**
 * The path of the device node of `major:minor`, by its kernel name. Where /dev is not the kernel's own, as in containers, nobody makes nodes of
 * devices that come later: it is made here. Throws FAILED_PRECONDITION when there is none.
 */
export async function deviceNode(call: CallContext, tools: NodeTools, name: string, number: string): Promise<string> {
  // Devices in folders, such as those of device drivers of old, have an exclamation mark for the slash.
  const path = `/dev/${name.replaceAll('!', '/')}`;
  const isThere = async () => ((await numberAt(path)) === number ? path : undefined);
  if (await isThere()) return path;
  const table = await tools.readTable();
  if (table.covering(dirname(path))?.fsType === 'devtmpfs') {
    const made = await poll(call, patienceMs, isThere);
    if (made) return made;
    throw new CallError('FAILED_PRECONDITION', `the kernel has made no device node ${path} (${number})`);
  }
  // A node of a device that had the name before.
  if ((await numberAt(path)) !== undefined) await unlink(path);
  const [major = '', minor = ''] = number.split(':');
  await tools.run(call, {
    program: 'mknod',
    args: ['-m', '0600', path, 'b', major, minor],
    timeoutMs: tools.limits.mount,
  });
  return path;
}

async function numberAt(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found?.isBlockDevice() ? deviceNumber(found.rdev) : undefined;
}
