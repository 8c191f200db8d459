import { realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import { ifThere } from '../../core/if-there.ts';
import { isWithin, readMountTable } from '../../node/mount-table.ts';

/**
 * Where on this node the folder `path`, or something in it, is mounted: bind mounts of it, and what is mounted upon it or below it. Empty when
 * it is not, or not there. Mounts in other mount namespaces cannot be seen. For folders on local file systems.
 */
export async function mountPointsOf(path: string): Promise<readonly string[]> {
  const real = await ifThere(() => realpath(path));
  if (real === undefined) return [];
  const table = await readMountTable();
  const covering = table.covering(real);
  if (!covering) return [];
  const root = posix.join(covering.root, posix.relative(covering.mountPoint, real));
  return table.mounts
    .filter(
      (mount) => isWithin(mount.mountPoint, real) || (mount.device === covering.device && isWithin(mount.root, root)),
    )
    .map((mount) => mount.mountPoint);
}
