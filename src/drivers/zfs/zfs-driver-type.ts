/** The rows of the ZFS family: volumes that are file systems or block devices × how they get to the nodes × where their ZFS is. */
import * as v from 'valibot';
import type { ZfsHost } from '../../backends/zfs/zfs-host.ts';
import { type CommonOptions, commonEntries } from '../../config/common.ts';
import type { AccessMode } from '../../core/volume.ts';
import type { CapabilityRules } from '../common/capability-check.ts';
import { loadTemplates } from '../common/id-template.ts';
import type { DriverType } from '../type.ts';
import { type ZfsOptions, zfsEntries } from './options.ts';
import type { Share } from './share.ts';
import { sshConnection } from './ssh-options.ts';
import type { ZfsStore } from './store.ts';

/** What one row differs from another in. */
export interface ZfsKind {
  /** The value of `driver:`. */
  readonly name: string;
  readonly summary: string;
  readonly kind: ZfsStore['kind'];
  /** `local`: on the node itself, which alone can use its volumes. `remote`: on this host, or another one over SSH. */
  readonly where: 'local' | 'remote';
  /** The entries of the block of its share, by the block's name. */
  readonly entries: v.ObjectEntries;
  /** The blocks of its share in the smallest document. */
  readonly example: Readonly<Record<string, unknown>>;
  readonly mountGroup?: boolean | undefined;
  rules(modes: readonly AccessMode[] | undefined): CapabilityRules;
  /** `options` is the validated document. */
  share(options: Readonly<Record<string, unknown>>, parts: ShareParts): Share;
}

/** What shares are made with. */
export interface ShareParts {
  readonly zfs: ZfsHost;
  readonly render: ZfsStore['render'];
}

export type ZfsDriverOptions = CommonOptions & { readonly zfs: ZfsOptions } & Readonly<Record<string, unknown>>;

/** Not before somebody has a ZFS connection: it is much, and most of what the drivers are. */
let making: typeof import('./create-zfs-driver.ts') | undefined;

const remoteEntries = { sshConnection: v.optional(sshConnection) };

export function zfsDriverType(row: ZfsKind): DriverType<ZfsDriverOptions> {
  const { name, where, entries } = row;
  const schema = v.object({
    ...commonEntries,
    zfs: v.object(zfsEntries),
    ...(where === 'remote' ? remoteEntries : {}),
    ...entries,
  });
  return {
    name,
    summary: row.summary,
    schema: schema as unknown as v.GenericSchema<unknown, ZfsDriverOptions>,
    example: { driver: name, zfs: { datasetParentName: 'tank/volumes' }, ...row.example },
    async prepare() {
      making ??= await import('./create-zfs-driver.ts');
      await loadTemplates();
    },
    create(options, environment) {
      if (!making) throw new Error(`${name} is made before it was prepared`);
      return making.createZfsDriver(row, options, environment);
    },
  };
}
