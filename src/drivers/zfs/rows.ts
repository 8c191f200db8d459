/** The drivers of the ZFS family on Linux and FreeBSD hosts. */
import * as v from 'valibot';
import { blockDeviceRules, fileSystemRules } from '../common/capability-check.ts';
import { nfsShare, smbShare } from './shares/by-property.ts';
import { iscsiEntries, iscsiShare } from './shares/iscsi.ts';
import { localShare } from './shares/local.ts';
import { nvmeofBlock, nvmeofShare } from './shares/nvmeof.ts';
import { zfsDriverType } from './zfs-driver-type.ts';

const text = v.pipe(
  v.union([v.string(), v.boolean()], 'a text'),
  v.transform((value) => (value === true ? 'on' : value === false ? 'off' : value)),
);

/** What a share of ZFS's own is configured by. `share` was a property of its own in old versions of ZFS. */
function shareByProperty(name: 'sharenfs' | 'sharesmb') {
  return v.object({
    shareHost: v.string('the server’s name or address, as nodes know it'),
    shareStrategy: v.optional(v.literal('setDatasetProperties', '"setDatasetProperties"'), 'setDatasetProperties'),
    shareStrategySetDatasetProperties: v.optional(
      v.object({ properties: v.optional(v.object({ share: v.optional(text), [name]: v.optional(text) }), {}) }),
      {},
    ),
  });
}

interface ByProperty {
  readonly shareHost: string;
  readonly shareStrategySetDatasetProperties: { readonly properties: Readonly<Record<string, string | undefined>> };
}

/** Empty values set nothing. */
function propertiesOf({
  shareStrategySetDatasetProperties: { properties },
}: ByProperty): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(properties).flatMap(([key, value]) => (value ? [[key, value]] : [])));
}

const sharedFsTypes = ['nfs', 'cifs'];
const zvolFsTypes = ['btrfs', 'exfat', 'ext2', 'ext3', 'ext4', 'ext4dev', 'ntfs', 'vfat', 'xfs'];

export const zfsGenericNfs = zfsDriverType({
  name: 'zfs-generic-nfs',
  summary: 'datasets of a ZFS host, shared by ZFS over NFS',
  kind: 'filesystem',
  where: 'remote',
  entries: { nfs: shareByProperty('sharenfs') },
  example: { nfs: { shareHost: 'nas' } },
  rules: (modes) => fileSystemRules(sharedFsTypes, modes),
  share: ({ nfs }) => nfsShare((nfs as ByProperty).shareHost, propertiesOf(nfs as ByProperty)),
});

export const zfsGenericSmb = zfsDriverType({
  name: 'zfs-generic-smb',
  summary: 'datasets of a ZFS host, shared by ZFS over SMB',
  kind: 'filesystem',
  where: 'remote',
  entries: { smb: shareByProperty('sharesmb') },
  example: { smb: { shareHost: 'nas' } },
  mountGroup: true,
  rules: (modes) => fileSystemRules(sharedFsTypes, modes),
  share: ({ smb }) => smbShare((smb as ByProperty).shareHost, propertiesOf(smb as ByProperty)),
});

export const zfsGenericIscsi = zfsDriverType({
  name: 'zfs-generic-iscsi',
  summary: 'block devices of a ZFS host, over iSCSI by its Linux target',
  kind: 'volume',
  where: 'remote',
  entries: { iscsi: v.object(iscsiEntries) },
  example: {
    iscsi: { targetPortal: 'nas', shareStrategyTargetCli: { basename: 'iqn.2003-01.org.example' } },
  },
  rules: (modes) => blockDeviceRules(zvolFsTypes, modes),
  share: ({ iscsi }, { zfs, render }) => iscsiShare(zfs, render, iscsi as Parameters<typeof iscsiShare>[2]),
});

export const zfsGenericNvmeof = zfsDriverType({
  name: 'zfs-generic-nvmeof',
  summary: 'block devices of a ZFS host, over NVMe-oF by its Linux target or SPDK',
  kind: 'volume',
  where: 'remote',
  entries: { nvmeof: nvmeofBlock },
  example: {
    nvmeof: { transport: 'tcp://nas', shareStrategyNvmetCli: { basename: 'nqn.2003-01.org.example', ports: ['1'] } },
  },
  rules: (modes) => blockDeviceRules(zvolFsTypes, modes),
  share: ({ nvmeof }, { zfs, render }) => nvmeofShare(zfs, render, nvmeof as Parameters<typeof nvmeofShare>[2]),
});

export const zfsLocalDataset = zfsDriverType({
  name: 'zfs-local-dataset',
  summary: 'datasets of this node’s own ZFS',
  kind: 'filesystem',
  where: 'local',
  entries: {},
  example: {},
  rules: (modes) => fileSystemRules(['zfs'], modes),
  share: () => localShare,
});

export const zfsLocalZvol = zfsDriverType({
  name: 'zfs-local-zvol',
  summary: 'block devices of this node’s own ZFS',
  kind: 'volume',
  where: 'local',
  entries: {},
  example: {},
  rules: (modes) => ({ ...blockDeviceRules(zvolFsTypes, modes), mount: fileSystemRules([], modes).mount }),
  share: () => localShare,
});
