import { join } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { blockFile } from './block-file.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { checkedPath, inspectPath, resolvePlace } from './paths.ts';
import type { NodeTools } from './tools.ts';

export interface FoundVolume {
  readonly table: MountTable;
  readonly mount: Mount;
  /** `major:minor` when what is mounted is a device node: a block volume. */
  readonly device?: string | undefined;
}

/** What is mounted where a volume is staged or published. Throws NOT_FOUND when nothing is. */
export async function findVolume(call: CallContext, tools: NodeTools, volumePath: string): Promise<FoundVolume> {
  const path = asPath(volumePath);
  const table = await tools.readTable();
  const place = await resolvePlace(call, tools, table, path);
  // A block volume's staging path is a directory with the mounted device node in it.
  const mount = place && (table.at(place) ?? table.at(join(place, blockFile)));
  if (!mount) throw new CallError('NOT_FOUND', `no volume is mounted at ${path}`);
  if (mayHang(mount)) return { table, mount };
  const found = await inspectPath(call, tools, table, mount.mountPoint);
  return found.is === 'device' ? { table, mount, device: found.device } : { table, mount };
}

/** Whatever is no proper path has no volume either. */
function asPath(volumePath: string): string {
  try {
    return checkedPath(volumePath, 'volume_path');
  } catch (error) {
    if (error instanceof CallError) throw new CallError('NOT_FOUND', error.message, { cause: error });
    throw error;
  }
}
