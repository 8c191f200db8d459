/** The `zfs` block of the configuration. */
import * as v from 'valibot';
import { account } from '../../config/account.ts';
import { octalMode } from '../../config/octal-mode.ts';

/** zfs(8), "ZFS File System Hierarchy": the names of datasets. */
const expectedDataset = 'the name of a dataset, such as "tank/volumes"';
const dataset = v.pipe(
  v.string(expectedDataset),
  v.transform((name) => name.replace(/\/$/, '')),
  v.regex(/^[A-Za-z][A-Za-z0-9_.: -]*(?:\/[A-Za-z0-9_.:-][A-Za-z0-9_.: -]*)*$/, expectedDataset),
);

const text = v.pipe(v.union([v.string(), v.number(), v.boolean()], 'a text'), v.transform(String));

const blockSizes = ['512', '1K', '2K', '4K', '8K', '16K', '32K', '64K', '128K'] as const;

const blockSize = v.pipe(
  v.union([v.string(), v.number()], 'a block size'),
  v.transform((size) => String(size).toUpperCase().replace(/B$/, '')),
  v.picklist(blockSizes, `one of ${blockSizes.join(', ')}`),
);

/** Bytes of a block size. */
export function blockBytes(size: string): number {
  return size.endsWith('K') ? Number(size.slice(0, -1)) * 1024 : Number(size);
}

export const zfsEntries = {
  datasetParentName: dataset,
  detachedSnapshotsDatasetParentName: v.optional(dataset),
  datasetProperties: v.optional(v.record(v.string(), text)),
  snapshotProperties: v.optional(v.record(v.string(), text)),
  datasetEnableQuotas: v.optional(v.boolean(), false),
  datasetEnableReservation: v.optional(v.boolean(), false),
  datasetPermissionsMode: v.optional(octalMode()),
  datasetPermissionsUser: v.optional(account),
  datasetPermissionsGroup: v.optional(account),
  datasetPermissionsAcls: v.optional(v.array(v.string())),
  datasetPermissionsAclsBinary: v.optional(v.string(), 'setfacl'),
  zvolBlocksize: v.optional(blockSize, '16K'),
  zvolEnableReservation: v.optional(v.boolean(), false),
  zvolCompression: v.optional(text),
  zvolDedup: v.optional(text),
  /**
   * ZFS properties that a class may set by a parameter of the same name, such as `compression` or `recordsize`. `zvolBlocksize` always may be.
   */
  classProperties: v.optional(v.array(v.string()), [
    'compression',
    'recordsize',
    'volblocksize',
    'sync',
    'logbias',
    'atime',
  ]),
  /** Snapshots of a volume that nobody made through CSI, when the volume is deleted: gone with it, or in its way. */
  foreignSnapshots: v.optional(v.picklist(['destroy', 'refuse']), 'destroy'),
  /** A volume that has clones is not deleted; or one of its clones is promoted, and it is. */
  deleteWithClones: v.optional(v.picklist(['refuse', 'promote']), 'refuse'),
  cli: v.optional(
    v.object({
      sudoEnabled: v.optional(v.boolean(), false),
      paths: v.optional(
        v.object({
          zfs: v.optional(v.string()),
          zpool: v.optional(v.string()),
          sudo: v.optional(v.string()),
          chroot: v.optional(v.string()),
        }),
      ),
    }),
  ),
} as const;

const schema = v.object(zfsEntries);

/** The block after validation. */
export type ZfsOptions = v.InferOutput<typeof schema>;
