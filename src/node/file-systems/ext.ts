import type { FileSystem } from './file-system.ts';

/** ext3 and ext4. Field offsets: Linux documentation, filesystems/ext4, "Super Block". */
export const ext: FileSystem = {
  names: ['ext4', 'ext3', 'ext4dev'],
  // Blocks kept for the superuser are of no use on a volume.
  make: (name, device, custom) => ({ program: `mkfs.${name}`, args: ['-q', '-m', '0', ...custom, device] }),
  ownOptions: { flags: 'Dj', valued: 'bCEgGiIJLmNOTU' },
  // 1: errors were corrected.
  check: (device, custom, after) => ({
    program: 'fsck',
    args: [...custom, device, '--', ...after, '-f', '-p'],
    accept: [0, 1],
  }),
  grow: (device) => ({ program: 'resize2fs', args: [device] }),
  superblock: {
    offset: 1024,
    length: 1024,
    size(bytes) {
      if (bytes.readUInt16LE(0x38) !== 0xef53) return undefined;
      const wide = (bytes.readUInt32LE(0x60) & 0x80) !== 0;
      const blocks = bytes.readUInt32LE(0x04) + (wide ? bytes.readUInt32LE(0x150) * 2 ** 32 : 0);
      return blocks * 2 ** (10 + bytes.readUInt32LE(0x18));
    },
  },
};

const { grow: _online, ...common } = ext;

/** The kernel does not grow it while it is mounted. */
export const ext2: FileSystem = {
  ...common,
  names: ['ext2'],
  growUnmounted: (device) => [
    // resize2fs wants it checked, however clean it is.
    { program: 'e2fsck', args: ['-f', '-p', device], accept: [0, 1] },
    { program: 'resize2fs', args: [device] },
  ],
};
