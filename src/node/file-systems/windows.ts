import type { FileSystem } from './file-system.ts';

const fsck = (device: string, custom: readonly string[], after: readonly string[]) => ({
  program: 'fsck',
  args: [...custom, device, ...(after.length > 0 ? ['--', ...after] : [])],
  accept: [0, 1],
});

/** File systems shared with Windows. They keep no owners: one group owns everything. They do not grow while mounted. */
export const windows: readonly FileSystem[] = [
  {
    names: ['vfat'],
    // -I: the whole device, without a partition table.
    make: (_name, device, custom) => ({ program: 'mkfs.vfat', args: [...custom, '-I', device] }),
    check: fsck,
    ownedByMount: true,
  },
  {
    names: ['exfat'],
    make: (_name, device, custom) => ({ program: 'mkfs.exfat', args: [...custom, device] }),
    check: fsck,
    ownedByMount: true,
  },
  {
    names: ['ntfs3', 'ntfs'],
    make: (_name, device, custom) => ({ program: 'mkfs.ntfs', args: [...custom, device] }),
    check: fsck,
    ownedByMount: true,
  },
];
