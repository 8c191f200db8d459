import { CallError } from '../../core/errors.ts';
import { btrfs } from './btrfs.ts';
import { ext, ext2 } from './ext.ts';
import type { FileSystem } from './file-system.ts';
import { windows } from './windows.ts';
import { xfs } from './xfs.ts';

const fileSystems: readonly FileSystem[] = [ext, ext2, xfs, btrfs, ...windows];

/** The file system of this name, whether as `fs_type` or as blkid says it; undefined: not one that is put on block devices. */
export function fileSystemNamed(name: string): FileSystem | undefined {
  return fileSystems.find((one) => one.names.includes(name));
}

/** The file system that a request asks for: ext4 when it leaves that open. Throws INVALID_ARGUMENT for an unknown one. */
export function wantedFileSystem(fsType: string): { readonly name: string; readonly fileSystem: FileSystem } {
  const name = fsType || 'ext4';
  const fileSystem = fileSystemNamed(name);
  if (fileSystem) return { name, fileSystem };
  const known = fileSystems.flatMap((one) => one.names).join(', ');
  throw new CallError(
    'INVALID_ARGUMENT',
    `a block device cannot have the file system "${fsType}"; possible are ${known}`,
  );
}
