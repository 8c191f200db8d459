import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { isDeviceGone } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount } from './mount-table.ts';
import { remoteUsage } from './remote-usage.ts';
import type { NodeTools } from './tools.ts';

/**
 * Why nothing can be done with a mount any more; undefined: it is alive. Its directory was removed, its device is gone, or its server does
 * not answer (asked by a child with a time limit).
 */
export async function whyDead(call: CallContext, tools: NodeTools, mount: Mount): Promise<string | undefined> {
  if (mount.root.endsWith('//deleted')) return `${mount.root.slice(0, -'//deleted'.length)} was removed below it`;
  if (mayHang(mount)) return await whyOutOfReach(call, tools, mount);
  if (!mount.device.startsWith('0:') && (await isDeviceGone(mount.device))) return `its device ${mount.source} is gone`;
  return undefined;
}

async function whyOutOfReach(call: CallContext, tools: NodeTools, mount: Mount): Promise<string | undefined> {
  try {
    await remoteUsage(call, tools, mount);
    return undefined;
  } catch (error) {
    if (error instanceof CallError && error.code === 'UNAVAILABLE' && !call.signal.aborted) return error.message;
    throw error;
  }
}
