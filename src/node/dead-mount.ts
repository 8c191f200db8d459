import type { CallContext } from '../core/call.ts';
import { deviceExists } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { inspectPath } from './paths.ts';
import type { NodeTools } from './tools.ts';

/**
 * Why nothing can be done with a mount any more; undefined: it is alive. Its directory was removed, its device is gone, or its server does
 * not answer (asked by a child with a time limit).
 */
export async function whyDead(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  mount: Mount,
): Promise<string | undefined> {
  if (mount.root.endsWith('//deleted')) return `${mount.root.slice(0, -'//deleted'.length)} was removed below it`;
  if (mayHang(mount)) {
    const found = await inspectPath(call, tools, table, mount.mountPoint);
    return found.is === 'dead' ? `${mount.source} is out of reach: ${found.why}` : undefined;
  }
  if (!mount.device.startsWith('0:') && !(await deviceExists(mount.device)))
    return `its device ${mount.source} is gone`;
  return undefined;
}
