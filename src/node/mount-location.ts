/**
 * Where mounts are, in terms of the file systems that they lie in. Mount propagation shows one mount at several paths, such as below
 * /var/lib/kubelet and below /host/var/lib/kubelet of the same container: these have the same location.
 */
import { join, relative } from 'node:path/posix';
import type { Mount, MountTable } from './mount-table.ts';

/** Of what is, or would be, mounted at a path. */
export function locationOf(table: MountTable, path: string): string | undefined {
  const top = table.covering(path);
  const below = top?.mountPoint === path ? table.stackAt(path).at(-1) : undefined;
  if (below) return locationOfMount(table, below);
  return top && `${top.device} ${join(top.root, relative(top.mountPoint, path))}`;
}

export function locationOfMount(table: MountTable, mount: Mount): string | undefined {
  const parent = table.mounts.find((one) => one.id === mount.parentId);
  return parent && `${parent.device} ${join(parent.root, relative(parent.mountPoint, mount.mountPoint))}`;
}
