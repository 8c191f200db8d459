import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import type { MountCapability } from '../core/volume.ts';
import { isAsidePlace } from './aside-place.ts';
import { bindMount } from './bind-mount.ts';
import { prepareFileSystem } from './file-systems/prepare.ts';
import type { BlockDevice } from './file-systems/probe.ts';
import { withLock } from './keyed-lock.ts';
import { runMount } from './mount-command.ts';
import type { Mount, MountTable } from './mount-table.ts';
import type { NodeTools } from './tools.ts';
import type { Wanted, WantedOptions } from './wanted.ts';

/** The key of the lock under which mounts of the device `major:minor` come and go. */
export const deviceLock = (device: string) => `device ${device}`;

export interface DeviceVolume {
  readonly capability: MountCapability;
  readonly mountGroup: boolean;
  readonly formatOptions?: string | undefined;
}

/** The file system on a block device. It is made when the device is blank. */
export function wantDevice(
  tools: NodeTools,
  device: BlockDevice,
  { capability, mountGroup, formatOptions }: DeviceVolume,
  options: WantedOptions,
): Wanted {
  // btrfs mounts have an anonymous device number, but name the device.
  const matches = (mount: Mount) =>
    mount.root === '/' &&
    (mount.device === device.number || (mount.fsType === 'btrfs' && mount.source === device.path));

  async function mountAnew(call: CallContext, place: string): Promise<void> {
    const { type, fileSystem } = await prepareFileSystem(call, tools, device, {
      capability,
      readonly: options.readonly || options.flags.includes('ro'),
      formatOptions,
    });
    const group =
      mountGroup && fileSystem?.ownedByMount && capability.mountGroup ? [`gid=${capability.mountGroup}`] : [];
    const all = [...(fileSystem?.options ?? []), ...options.flags, ...group, ...(options.readonly ? ['ro'] : [])];
    await runMount(call, tools, { source: device.path, place, fsType: type, options: all });
  }

  return {
    ...options,
    title: device.path,
    on: 'directory',
    key: `device ${device.number}`,
    matches,
    mount: (call, _table, place) =>
      withLock(deviceLock(device.number), call.signal, async () => {
        // Another mount of it may have come or gone while this one waited.
        const table = await tools.readTable();
        const mounted = table.mounts.filter(matches);
        const visible = mounted.filter((mount) => table.at(mount.mountPoint) === mount);
        const other = visible.find((mount) => !isAsidePlace(mount.mountPoint)) ?? visible[0];
        if (other) return await mountAgain(call, tools, table, other, place, options);
        if (mounted.length === 0) return await mountAnew(call, place);
        throw new CallError('FAILED_PRECONDITION', `${device.path} is mounted where it is hidden by another mount`);
      }),
  };
}

/**
 * A second mount of a file system that is mounted already, possibly with other options: the kernel refuses to mount a device read-only and
 * writable at once, but one mount of it may be read-only while another is not.
 */
async function mountAgain(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  other: Mount,
  place: string,
  options: WantedOptions,
): Promise<void> {
  const inherited = other.options.filter((option) => option !== 'ro');
  const readonly = options.readonly || options.flags.includes('ro');
  // This makes the file system writable and this mount of it; the other mount stays read-only.
  const lift = !readonly && other.options.includes('ro');
  await bindMount(call, tools, table, {
    ...options,
    source: other.mountPoint,
    place,
    on: 'directory',
    inherited,
    lift,
  });
}
