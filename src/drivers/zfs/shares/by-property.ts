/** Shared by ZFS itself over NFS or SMB: zfsprops(7), `sharenfs` and `sharesmb`. */
import { type Dataset, valueIn } from '../../../backends/zfs/dataset.ts';
import { CallError } from '../../../core/errors.ts';
import type { Share, Shared } from '../share.ts';

/** The mount point of a file system that has one. Throws FAILED_PRECONDITION otherwise. */
function mountPointOf(dataset: Dataset): string {
  const found = valueIn(dataset, 'mountpoint');
  if (found?.startsWith('/')) return found;
  throw new CallError(
    'FAILED_PRECONDITION',
    `${dataset.name} has no mount point (mountpoint=${found ?? 'none'}), so it cannot be shared: set one on the parent dataset`,
  );
}

/** NFS by `sharenfs`, when `properties` has it; otherwise the administrator shares what is above. */
export function nfsShare(server: string, properties: Readonly<Record<string, string>>): Share {
  return byProperty(properties, (dataset) => ({ node_attach_driver: 'nfs', server, share: mountPointOf(dataset) }));
}

/** SMB by `sharesmb`: ZFS names the share after the dataset, with `_` for what a share's name cannot have. */
export function smbShare(server: string, properties: Readonly<Record<string, string>>): Share {
  return byProperty(properties, ({ name }) => ({
    node_attach_driver: 'smb',
    server,
    share: name.replace(/[-/: ]/g, '_'),
  }));
}

function byProperty(properties: Share['properties'], contextOf: (dataset: Dataset) => Shared['context']): Share {
  const byProperties = (dataset: Dataset): Shared => ({ context: contextOf(dataset) });
  return {
    properties,
    wants: ['mountpoint', 'mounted', ...Object.keys(properties)],
    byProperties,
    publish: async (_call, _request, dataset) => byProperties(dataset),
    conditionOf(dataset) {
      const missing = Object.keys(properties).find((name) => (valueIn(dataset, name) ?? 'off') === 'off');
      return missing && properties[missing] !== 'off'
        ? { abnormal: true, message: `it is not shared: ${missing} is off` }
        : undefined;
    },
  };
}
