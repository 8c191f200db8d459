import type { FileSystem } from './file-system.ts';

/** Field offsets: btrfs documentation, "On-disk Format", superblock; the size is that of the device item within it. */
export const btrfs: FileSystem = {
  names: ['btrfs'],
  make: (_name, device, custom) => ({ program: 'mkfs.btrfs', args: ['-q', ...custom, device] }),
  ownOptions: {
    flags: 'K',
    valued: 'LnsmdOR',
    long: ['csum', 'checksum', 'nodesize', 'sectorsize', 'metadata', 'data', 'features', 'runtime-features', 'label'],
  },
  check: (device, custom, after) => ({ program: 'btrfs', args: [...custom, 'check', ...after, device] }),
  grow: (_device, mountPoint) => ({ program: 'btrfs', args: ['filesystem', 'resize', 'max', mountPoint] }),
  superblock: {
    offset: 65_536,
    length: 512,
    size(bytes) {
      if (bytes.toString('latin1', 0x40, 0x48) !== '_BHRfS_M') return undefined;
      return Number(bytes.readBigUInt64LE(0xd1));
    },
  },
};
