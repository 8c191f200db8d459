/** `driver: zfs-local-ephemeral-inline`: a dataset of this node's ZFS for as long as one pod lives. */
import * as v from 'valibot';
import { createLocalShell } from '../../backends/shell/local-shell.ts';
import { createSshHosts } from '../../backends/ssh/ssh-hosts.ts';
import { createZfsHost } from '../../backends/zfs/zfs-host.ts';
import { advertisedFrom, commonEntries } from '../../config/common.ts';
import type { Driver } from '../../core/driver.ts';
import { createNodePlane } from '../../node/plane.ts';
import { fileSystemRules } from '../common/capability-check.ts';
import type { DriverEnvironment, DriverType } from '../type.ts';
import { zfsEntries } from '../zfs/options.ts';
import { sshConnection, sshSettings } from '../zfs/ssh-options.ts';
import { inlineNode } from './inline-node.ts';

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

type Options = v.InferOutput<typeof schema>;

const name = 'zfs-local-ephemeral-inline';

export const zfsLocalEphemeralInline: DriverType<Options> = {
  name,
  summary: 'datasets of this node’s own ZFS that live as long as a pod',
  schema,
  example: { driver: name, zfs: { datasetParentName: 'tank/inline' } },
  create: createDriver,
};

function createDriver(options: Options, environment: DriverEnvironment): Driver {
  const { nodeId, connection, stateDirectory, run, ssh } = environment;
  const { zfs: settings, sshConnection: remote, instance_id: instanceId } = options;
  const { chroot, cli } = settings;
  const shell = remote ? (ssh ?? createSshHosts()).open(sshSettings(remote)) : createLocalShell(run);
  const zfs = createZfsHost(shell, {
    zfs: [...(chroot ? [cli?.paths?.chroot ?? 'chroot', chroot] : []), cli?.paths?.zfs ?? 'zfs'],
    zpool: [cli?.paths?.zpool ?? 'zpool'],
    sudo: cli?.paths?.sudo ?? 'sudo',
    sudoEnabled: cli?.sudoEnabled ?? false,
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
