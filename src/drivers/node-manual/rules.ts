import { CallError } from '../../core/errors.ts';
import type { AccessMode, VolumeContext } from '../../core/volume.ts';
import { blockDeviceRules, type CapabilityRules, fileSystemRules } from '../common/capability-check.ts';

const onDisk = ['btrfs', 'exfat', 'ext2', 'ext3', 'ext4', 'ext4dev', 'ntfs', 'vfat', 'xfs'];

/** File systems that volumes of an attach driver can have; those on a disk can be published as block devices as well. */
const fsTypes: Readonly<Record<string, readonly string[]>> = {
  nfs: ['nfs'],
  smb: ['cifs'],
  lustre: ['lustre'],
  objectivefs: ['objectivefs', 'fuse.objectivefs'],
  oneclient: ['oneclient', 'fuse.oneclient'],
  iscsi: onDisk,
  nvmeof: onDisk,
  hostpath: ['none', 'bind', ...onDisk],
  bind: ['none', 'bind', ...onDisk],
  'zfs-local': ['zfs', ...onDisk],
};

/** What a volume with this context can be used as. Throws INVALID_ARGUMENT for an attach driver that is not known. */
export function rulesOf(context: VolumeContext, modes: readonly AccessMode[] | undefined): CapabilityRules {
  const kind = context.node_attach_driver ?? '';
  const types = Object.hasOwn(fsTypes, kind) ? fsTypes[kind] : undefined;
  if (!types) {
    const known = Object.keys(fsTypes).join(', ');
    throw new CallError(
      'INVALID_ARGUMENT',
      `node_attach_driver ${JSON.stringify(kind)} of the volume context is not one of ${known}`,
    );
  }
  switch (kind) {
    case 'iscsi':
    case 'nvmeof':
      return blockDeviceRules(types, modes);
    case 'hostpath':
    case 'bind':
    case 'zfs-local':
      // A directory or a device, on this node only: that several pods of it write is no harm.
      return { ...fileSystemRules(types, modes), block: fileSystemRules(types, modes).mount };
    default:
      return fileSystemRules(types, modes);
  }
}
