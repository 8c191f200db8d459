import type { Mount } from './mount-table.ts';

/** File systems that answer from this machine's own memory and disks. */
const local: ReadonlySet<string> = new Set([
  ...['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'zfs', 'bcachefs', 'f2fs', 'jfs', 'reiserfs', 'nilfs2'],
  ...['vfat', 'msdos', 'exfat', 'ntfs', 'ntfs3', 'fuseblk', 'hfsplus', 'iso9660', 'udf', 'squashfs', 'erofs'],
  ...['tmpfs', 'ramfs', 'rootfs', 'overlay', 'aufs', 'devtmpfs', 'proc', 'sysfs', 'cgroup', 'cgroup2', 'none'],
]);

/**
 * True for a mount that may never answer: NFS, SMB, FUSE and everything not known to be local. Calls into it can hold a thread for ever, so
 * it is only looked at from a child process with a time limit.
 */
export function mayHang(mount: Pick<Mount, 'fsType'> | undefined): boolean {
  return mount !== undefined && !local.has(mount.fsType);
}
