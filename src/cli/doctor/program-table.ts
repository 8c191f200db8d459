/** The programs of the host that drivers and the node plane may run. */

/** What a configuration can need of a host. */
export type Need =
  | 'mounts'
  | 'directories'
  | 'restic'
  | 'kopia'
  | 'xfs quota'
  | 'ext4 quota'
  | 'disks'
  | 'nfs'
  | 'smb'
  | 'lustre'
  | 'iscsi'
  | 'nvmeof'
  | 'zfs'
  | 'objectivefs'
  | 'oneclient';

export interface KnownProgram {
  readonly program: string;
  /** Any of these makes its absence an error. Empty: volumes may ask for it, but there is no telling before. */
  readonly neededBy: readonly Need[];
  readonly use: string;
  /** The package that has it, as most distributions call it. */
  readonly package: string;
  /** What makes it tell its version and do nothing else. Undefined: there is no such thing. */
  readonly ask?: readonly string[] | undefined;
}

const row = (
  program: string,
  neededBy: readonly Need[],
  use: string,
  packageName: string,
  ask: readonly string[] | undefined = ['--version'],
): KnownProgram => ({ program, neededBy, use, package: packageName, ask });

const ownVersion: readonly string[] = ['-V'];

export const knownPrograms: readonly KnownProgram[] = [
  row('mount', ['mounts'], 'mounts volumes', 'mount or util-linux'),
  row('umount', ['mounts'], 'unmounts volumes', 'mount or util-linux'),
  row('stat', ['mounts'], 'looks at mounts that may hang', 'coreutils'),
  row('realpath', ['mounts'], 'follows links on mounts that may hang', 'coreutils'),
  row('cp', ['directories'], 'copies volumes and snapshots', 'coreutils'),
  row('sync', ['directories'], 'makes copies durable', 'coreutils'),
  row('du', ['directories'], 'tells how large a volume is', 'coreutils'),
  row('rsync', [], 'goes on with copies that were broken off, instead of beginning anew', 'rsync'),
  row('restic', ['restic'], 'keeps snapshots in a repository', 'restic', ['version']),
  row('kopia', ['kopia'], 'keeps snapshots in a repository', 'kopia, from kopia.io'),
  row('mktemp', ['kopia'], 'makes the private folder of kopia', 'coreutils'),
  row('rm', ['kopia'], 'removes the private folder of kopia', 'coreutils'),
  row('getent', [], 'finds users and groups by name', 'libc-bin or glibc-common'),
  row('chattr', ['ext4 quota'], 'sizes of directories on ext4', 'e2fsprogs', []),
  row('setquota', ['ext4 quota'], 'sizes of directories on ext4', 'quota', ownVersion),
  row('xfs_quota', ['xfs quota'], 'sizes of directories on xfs', 'xfsprogs', ownVersion),
  row('xfs_io', ['xfs quota'], 'sizes of directories on xfs', 'xfsprogs', ownVersion),
  row('blkid', ['disks'], 'tells what is on a disk before anything is done to it', 'util-linux'),
  row('od', ['disks'], 'proves that a disk is blank before it is formatted', 'coreutils'),
  row('fsck', [], 'checks file systems, where it is enabled', 'util-linux'),
  row('mkfs.ext4', ['disks'], 'formats disks as ext4, the default', 'e2fsprogs', ownVersion),
  row('resize2fs', ['disks'], 'grows ext4', 'e2fsprogs', ['-h']),
  row('e2fsck', [], 'checks ext2 before it grows', 'e2fsprogs', ownVersion),
  row('mkfs.xfs', [], 'formats disks as xfs', 'xfsprogs', ownVersion),
  row('xfs_growfs', [], 'grows xfs', 'xfsprogs', ownVersion),
  row('xfs_repair', [], 'checks xfs, where it is enabled', 'xfsprogs', ownVersion),
  row('mkfs.btrfs', [], 'formats disks as btrfs', 'btrfs-progs'),
  row('btrfs', [], 'grows btrfs', 'btrfs-progs'),
  row('mkfs.vfat', [], 'formats disks as vfat', 'dosfstools', ['--help']),
  row('mkfs.exfat', [], 'formats disks as exfat', 'exfatprogs', ownVersion),
  row('mkfs.ntfs', [], 'formats disks as ntfs', 'ntfs-3g or ntfsprogs'),
  row('ntfsresize', [], 'grows ntfs', 'ntfs-3g or ntfsprogs'),
  row(
    'ntfsfix',
    [],
    'makes ntfs fit for mounting after it has grown, and checks it, where that is enabled',
    'ntfs-3g or ntfsprogs',
  ),
  row('mount.nfs', ['nfs'], 'mounts NFS', 'nfs-common or nfs-utils', ownVersion),
  row('mount.cifs', ['smb'], 'mounts SMB', 'cifs-utils', ownVersion),
  row('mount.lustre', ['lustre'], 'mounts Lustre', 'lustre-client-utils', undefined),
  row('iscsiadm', ['iscsi'], 'attaches iSCSI disks', 'open-iscsi or iscsi-initiator-utils'),
  row('dd', ['nvmeof'], 'connects NVMe-oF disks', 'coreutils'),
  row('tee', ['iscsi', 'nvmeof'], 'tells the kernel what to do with disks', 'coreutils'),
  row('modprobe', [], 'loads what the kernel needs for disks', 'kmod'),
  row('losetup', [], 'makes block volumes read-only', 'util-linux or losetup'),
  row('mknod', [], 'makes the nodes of disks where /dev is a container’s own', 'coreutils'),
  row('nvme', [], 'makes the name of a host for NVMe-oF', 'nvme-cli', ['version']),
  row('multipath', [], 'takes several paths to one disk apart', 'multipath-tools or device-mapper-multipath', ['-h']),
  row('multipathd', [], 'joins several paths to one disk', 'multipath-tools or device-mapper-multipath', ['-h']),
  row('zfs', ['zfs'], 'makes volumes of a ZFS pool', 'zfsutils-linux or zfs', ['version']),
  row('zpool', ['zfs'], 'tells of ZFS pools', 'zfsutils-linux or zfs', ['version']),
  row('mount.zfs', ['zfs'], 'mounts datasets', 'zfsutils-linux or zfs', undefined),
  row('mount.objectivefs', ['objectivefs'], 'mounts ObjectiveFS', 'objectivefs', undefined),
  row('oneclient', ['oneclient'], 'mounts Onedata', 'oneclient'),
  row('chroot', [], 'enters the root of a host that is mounted here', 'coreutils'),
  row('nsenter', [], 'enters the root of a host whose processes are seen here', 'util-linux'),
];
