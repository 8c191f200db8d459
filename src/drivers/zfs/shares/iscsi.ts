/** Block devices over iSCSI by the Linux target (LIO): made by targetcli, or through configfs itself. */
import * as v from 'valibot';
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import { secret } from '../../../config/secret.ts';
import type { Share } from '../share.ts';
import type { ZfsStore } from '../store.ts';
import { assetNameEntries } from './asset-name.ts';
import { attributes, attributeValue } from './attributes.ts';
import { lioConfigfsStrategy } from './lio-configfs.ts';
import { targetShare } from './target.ts';
import { targetcliStrategy } from './targetcli.ts';

const lio = v.object({
  sudoEnabled: v.optional(v.boolean()),
  basename: v.pipe(
    v.string(),
    v.regex(/^iqn\.\d{4}-\d\d\.[a-z0-9][^\s_]*$/, 'an IQN without its last part: iqn.2003-01.org.example'),
  ),
  tpg: v.optional(v.object({ attributes, auth: v.optional(v.record(v.string(), secret(attributeValue))) })),
  block: v.optional(v.object({ attributes })),
});

export const iscsiEntries = {
  ...assetNameEntries,
  targetPortal: v.optional(v.string(), ''),
  targetPortals: v.optional(v.array(v.string()), []),
  interface: v.optional(v.string(), ''),
  /** `targetCli`, or `configfs`: the same targets, made in milliseconds. Both are set up by the block `shareStrategyTargetCli`. */
  shareStrategy: v.optional(v.picklist(['targetCli', 'configfs'], '"targetCli" or "configfs"'), 'targetCli'),
  shareStrategyTargetCli: lio,
} as const;

const schema = v.object(iscsiEntries);
type IscsiOptions = v.InferOutput<typeof schema>;

export function iscsiShare(host: ZfsHost, render: ZfsStore['render'], options: IscsiOptions): Share {
  const { targetPortal, targetPortals, interface: via, shareStrategy, shareStrategyTargetCli: settings } = options;
  const zfs = host.withSudo(settings.sudoEnabled);
  const strategy = shareStrategy === 'configfs' ? lioConfigfsStrategy(zfs, settings) : targetcliStrategy(zfs, settings);
  return targetShare(zfs, render, shareStrategy === 'configfs' ? 'configfs' : 'targetcli', {
    naming: options,
    basename: settings.basename,
    property: 'democratic-csi:iscsi_assets_name',
    strategy,
    contextOf: (iqn) => ({
      node_attach_driver: 'iscsi',
      portal: targetPortal,
      portals: targetPortals.join(','),
      interface: via,
      iqn,
      lun: '0',
    }),
  });
}
