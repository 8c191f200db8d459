import type { FileSystem } from './file-system.ts';

/** Field offsets: XFS Algorithms & Data Structures, "Superblocks". */
export const xfs: FileSystem = {
  names: ['xfs'],
  make: (_name, device, custom) => ({ program: 'mkfs.xfs', args: ['-q', ...custom, device] }),
  ownOptions: { flags: 'K', valued: 'bmdilnsL' },
  // 2: the log holds changes; mounting replays it.
  check: (device, custom, after) => ({
    program: 'xfs_repair',
    args: ['-o', 'force_geometry', ...custom, ...after, device],
    accept: [0, 2],
  }),
  grow: (_device, mountPoint) => ({ program: 'xfs_growfs', args: [mountPoint] }),
  // A clone or a restored snapshot has the same UUID as the volume it was made from, which may be mounted too.
  options: ['nouuid'],
  superblock: {
    offset: 0,
    length: 512,
    size(bytes) {
      if (bytes.toString('latin1', 0, 4) !== 'XFSB') return undefined;
      return bytes.readUInt32BE(4) * Number(bytes.readBigUInt64BE(8));
    },
  },
};
