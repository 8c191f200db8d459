import type { FileSystem } from './file-system.ts';

const fsck = (device: string, custom: readonly string[], after: readonly string[]) => ({
  program: 'fsck',
  args: [...custom, device, ...(after.length > 0 ? ['--', ...after] : [])],
  accept: [0, 1],
});

/**
 * File systems shared with Windows. They keep no owners: one group owns everything. None grows while it is mounted; for vfat and exfat there is no
 * program that can grow one that has the whole of a disk.
 */
export const windows: readonly FileSystem[] = [
  {
    names: ['vfat'],
    // -I: the whole device, without a partition table.
    make: (_name, device, custom) => ({ program: 'mkfs.vfat', args: [...custom, '-I', device] }),
    ownOptions: { flags: 'a', valued: 'fFinrRsS' },
    check: fsck,
    ownedByMount: true,
    // Field offsets: Microsoft, "FAT32 File System Specification", BPB.
    superblock: {
      offset: 0,
      length: 512,
      size(bytes) {
        const sector = bytes.readUInt16LE(0x0b);
        if (bytes.readUInt16LE(0x1fe) !== 0xaa55 || sector < 512) return undefined;
        return sector * (bytes.readUInt16LE(0x13) || bytes.readUInt32LE(0x20));
      },
    },
  },
  {
    names: ['exfat'],
    make: (_name, device, custom) => ({ program: 'mkfs.exfat', args: [...custom, device] }),
    ownOptions: { flags: '', valued: 'Lcb' },
    check: fsck,
    ownedByMount: true,
    // Field offsets: Microsoft, "exFAT file system specification", Main Boot Sector.
    superblock: {
      offset: 0,
      length: 512,
      size(bytes) {
        if (bytes.toString('latin1', 3, 11) !== 'EXFAT   ') return undefined;
        return Number(bytes.readBigUInt64LE(0x48)) * 2 ** bytes.readUInt8(0x6c);
      },
    },
  },
  {
    names: ['ntfs3', 'ntfs'],
    // -F: a disk is as good as a partition. -Q: without writing zeros to all of it.
    make: (_name, device, custom) => ({ program: 'mkfs.ntfs', args: ['-F', '-Q', '-q', ...custom, device] }),
    ownOptions: { flags: 'CIUT', valued: 'LcpHSz' },
    // There is no fsck.ntfs. -d: what is fixed can be mounted.
    check: (device, custom, after) => ({ program: 'ntfsfix', args: ['-d', ...custom, ...after, device] }),
    ownedByMount: true,
    growUnmounted: (device) => [
      // Without -f it asks, and refuses what was not unmounted in order.
      { program: 'ntfsresize', args: [device], input: 'y\n' },
      // ntfsresize leaves the mark by which Windows would check it, and with which the kernel does not mount it.
      { program: 'ntfsfix', args: ['-d', device] },
    ],
    // Field offsets: ntfs-3g, layout.h, NTFS_BOOT_SECTOR.
    superblock: {
      offset: 0,
      length: 512,
      size(bytes) {
        if (bytes.toString('latin1', 3, 11) !== 'NTFS    ') return undefined;
        return Number(bytes.readBigUInt64LE(0x28)) * bytes.readUInt16LE(0x0b);
      },
    },
  },
];
