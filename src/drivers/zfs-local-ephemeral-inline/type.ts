/** `driver: zfs-local-ephemeral-inline`: a dataset of this node's ZFS for as long as one pod lives. */
import * as v from 'valibot';
import { commonEntries } from '../../config/common.ts';
import type { DriverType } from '../type.ts';
import { zfsEntries } from '../zfs/options.ts';
import { sshConnection } from '../zfs/ssh-options.ts';

const property = v.object({
  value: v.pipe(v.union([v.string(), v.number(), v.boolean()], 'a value'), v.transform(String)),
  /** Whether a pod may have another value. */
  allowOverride: v.optional(v.boolean(), true),
});

const block = v.object({
  datasetParentName: zfsEntries.datasetParentName,
  /** Runs zfs in this root directory: where the host's file system is mounted in the container. */
  chroot: v.optional(v.string()),
  properties: v.optional(v.record(v.string(), property), {}),
  cli: zfsEntries.cli,
});

const schema = v.object({ ...commonEntries, zfs: block, sshConnection: v.optional(sshConnection) });

export type InlineOptions = v.InferOutput<typeof schema>;

const name = 'zfs-local-ephemeral-inline';

/** Not before somebody has such a connection. */
let making: typeof import('./create-inline-driver.ts') | undefined;

export const zfsLocalEphemeralInline: DriverType<InlineOptions> = {
  name,
  summary: 'datasets of this node’s own ZFS that live as long as a pod',
  schema,
  example: { driver: name, zfs: { datasetParentName: 'tank/inline' } },
  async prepare() {
    making ??= await import('./create-inline-driver.ts');
  },
  create(options, environment) {
    if (!making) throw new Error(`${name} is made before it was prepared`);
    return making.createInlineDriver(name, options, environment);
  },
};
