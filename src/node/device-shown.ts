import type { CallContext } from '../core/call.ts';
import { deviceOfMount } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { inspectPath } from './paths.ts';
import type { NodeTools } from './tools.ts';

/**
 * The block device (`major:minor`) that a mount is the whole of, or shows as a device node. Undefined for a directory of a larger file system:
 * the device below it is none of the volume's business.
 */
export async function deviceShown(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  mount: Mount,
): Promise<string | undefined> {
  if (mayHang(mount)) return undefined;
  const found = await inspectPath(call, tools, table, mount.mountPoint);
  if (found.is === 'device') return found.device;
  return mount.root === '/' ? await deviceOfMount(mount) : undefined;
}
