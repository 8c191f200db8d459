import { createLocalShell } from '../../backends/shell/local-shell.ts';
import { createSshHosts } from '../../backends/ssh/ssh-hosts.ts';
import { createZfsHost } from '../../backends/zfs/zfs-host.ts';
import { advertisedFrom } from '../../config/common.ts';
import type { Driver } from '../../core/driver.ts';
import { createNodePlane } from '../../node/plane.ts';
import { fileSystemRules } from '../common/capability-check.ts';
import type { DriverEnvironment } from '../type.ts';
import { sshSettings } from '../zfs/ssh-options.ts';
import { inlineNode } from './inline-node.ts';
import type { InlineOptions } from './type.ts';

/** `name`: that of the driver. */
export function createInlineDriver(name: string, options: InlineOptions, environment: DriverEnvironment): Driver {
  const { nodeId, connection, stateDirectory, run, ssh } = environment;
  const { zfs: settings, sshConnection: remote, instance_id: instanceId } = options;
  const { chroot, cli } = settings;
  const shell = remote ? (ssh ?? createSshHosts()).open(sshSettings(remote)) : createLocalShell(run);
  const zfs = createZfsHost(shell, {
    zfs: [...(chroot ? [cli?.paths?.chroot ?? 'chroot', chroot] : []), cli?.paths?.zfs ?? 'zfs'],
    zpool: [cli?.paths?.zpool ?? 'zpool'],
    sudo: cli?.paths?.sudo ?? 'sudo',
    sudoEnabled: cli?.sudoEnabled ?? false,
    pools: settings.datasetParentName.split('/').slice(0, 1),
  });
  const plane = createNodePlane({ info: { nodeId }, run, settings: options.node, stateDirectory, connection });
  const modes = options.csi?.access_modes ?? [
    'UNKNOWN',
    'SINGLE_NODE_WRITER',
    'SINGLE_NODE_READER_ONLY',
    'SINGLE_NODE_SINGLE_WRITER',
    'SINGLE_NODE_MULTI_WRITER',
  ];
  return {
    name,
    constrained: false,
    advertised: advertisedFrom(options),
    node: inlineNode(plane, {
      zfs,
      parent: `${settings.datasetParentName}/v`,
      properties: settings.properties,
      rules: fileSystemRules(['zfs'], modes),
      driver: name,
      instanceId,
    }),
    close: () => zfs.close(),
  };
}
