/** Block devices over NVMe over Fabrics: by the Linux target through nvmetcli or configfs, or by SPDK. */
import * as v from 'valibot';
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import type { Share } from '../share.ts';
import type { ZfsStore } from '../store.ts';
import { assetNameEntries } from './asset-name.ts';
import { attributes, attributeValue } from './attributes.ts';
import { nvmetConfigfsStrategy } from './nvmet-configfs.ts';
import { nvmetcliStrategy } from './nvmetcli.ts';
import { spdkcliStrategy } from './spdkcli.ts';
import { targetShare } from './target.ts';

const basename = v.pipe(
  v.string(),
  v.regex(/^nqn\.\d{4}-\d\d\.[a-z0-9]\S*$/, 'an NQN without its last part: nqn.2003-01.org.example'),
);
const ports = v.optional(
  v.array(v.pipe(v.union([v.string(), v.number()], 'a port'), v.transform(String), v.regex(/^[A-Za-z0-9_.-]+$/))),
  [],
);

const nvmet = v.object({
  sudoEnabled: v.optional(v.boolean()),
  nvmetcliPath: v.optional(v.string(), 'nvmetcli'),
  configIsImportedFilePath: v.optional(v.string()),
  configPath: v.optional(v.string()),
  basename,
  ports,
  subsystem: v.optional(v.object({ attributes })),
});

const spdk = v.object({
  sudoEnabled: v.optional(v.boolean()),
  spdkcliPath: v.optional(v.string(), 'spdkcli'),
  configPath: v.optional(v.string()),
  basename,
  bdev: v.object({ type: v.pipe(v.string(), v.regex(/^\w+$/)), attributes }),
  subsystem: v.optional(v.object({ attributes })),
  listeners: v.optional(v.array(v.record(v.string(), attributeValue)), []),
});

const nvmeofEntries = {
  ...assetNameEntries,
  transport: v.optional(v.string()),
  transports: v.optional(v.array(v.string()), []),
  /** `nvmetCli`, `spdkCli`, or `configfs`: what nvmetCli makes, in milliseconds; it is set up by the same block. */
  shareStrategy: v.optional(
    v.picklist(['nvmetCli', 'spdkCli', 'configfs'], '"nvmetCli", "spdkCli" or "configfs"'),
    'nvmetCli',
  ),
  shareStrategyNvmetCli: v.optional(nvmet),
  shareStrategySpdkCli: v.optional(spdk),
  /** With `configfs`: the program and arguments that keep the targets over a reboot, such as [nvmetcli, save]. */
  saveCommand: v.optional(v.array(v.string()), []),
} as const;

const schema = v.object(nvmeofEntries);
type NvmeofOptions = v.InferOutput<typeof schema>;

/** Refuses a strategy without its block. */
export const nvmeofBlock = v.pipe(
  schema,
  v.check(
    ({ shareStrategy, shareStrategyNvmetCli, shareStrategySpdkCli }) =>
      (shareStrategy === 'spdkCli' ? shareStrategySpdkCli : shareStrategyNvmetCli) !== undefined,
    'the block of its share strategy: shareStrategyNvmetCli for nvmetCli and configfs, shareStrategySpdkCli for spdkCli',
  ),
);

export function nvmeofShare(host: ZfsHost, render: ZfsStore['render'], options: NvmeofOptions): Share {
  const { transport, transports, shareStrategy } = options;
  const { strategy, base } = strategyOf(host, options);
  return targetShare(
    host,
    render,
    shareStrategy === 'spdkCli' ? 'spdkcli' : shareStrategy === 'nvmetCli' ? 'nvmetcli' : 'configfs',
    {
      naming: options,
      basename: base,
      property: 'democratic-csi:nvmeof_assets_name',
      strategy,
      contextOf: (nqn) => ({
        node_attach_driver: 'nvmeof',
        ...(transport !== undefined && { transport }),
        transports: transports.join(','),
        nqn,
        nsid: '1',
      }),
    },
  );
}

function strategyOf(host: ZfsHost, options: NvmeofOptions) {
  const { shareStrategy, shareStrategyNvmetCli: kernel, shareStrategySpdkCli: userSpace, saveCommand } = options;
  if (shareStrategy === 'spdkCli' && userSpace) {
    return { strategy: spdkcliStrategy(host.withSudo(userSpace.sudoEnabled), userSpace), base: userSpace.basename };
  }
  if (!kernel) throw new TypeError('the configuration was not checked');
  const zfs = host.withSudo(kernel.sudoEnabled);
  const strategy =
    shareStrategy === 'configfs' ? nvmetConfigfsStrategy(zfs, kernel, saveCommand) : nvmetcliStrategy(zfs, kernel);
  return { strategy, base: kernel.basename };
}
