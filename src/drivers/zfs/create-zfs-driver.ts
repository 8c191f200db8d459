import type * as v from 'valibot';
import type { RunCommand } from '../../backends/exec/run.ts';
import { createLocalShell } from '../../backends/shell/local-shell.ts';
import type { Shell } from '../../backends/shell/shell.ts';
import { createSshHosts } from '../../backends/ssh/ssh-hosts.ts';
import { createZfsHost } from '../../backends/zfs/zfs-host.ts';
import { advertisedFrom } from '../../config/common.ts';
import type { Driver } from '../../core/driver.ts';
import { createNodePlane } from '../../node/plane.ts';
import { compileIdTemplate } from '../common/id-template.ts';
import type { DriverEnvironment } from '../type.ts';
import { zfsOperations } from './driver.ts';
import type { ZfsOptions } from './options.ts';
import { type sshConnection, sshSettings } from './ssh-options.ts';
import type { ZfsStore } from './store.ts';
import type { ZfsDriverOptions, ZfsKind } from './zfs-driver-type.ts';

/** Makes the driver of a row. Templates must have been loaded. */
export function createZfsDriver(row: ZfsKind, options: ZfsDriverOptions, environment: DriverEnvironment): Driver {
  const { nodeId, nodeTopology, connection, stateDirectory, run, log, maxIdBytes } = environment;
  const { zfs: settings, instance_id: instanceId } = options;
  const volume = options._private?.csi?.volume;
  const isLocal = row.where === 'local';
  const zfs = createZfsHost(openShell(options, environment, run), programsOf(settings, isLocal));
  const render = renderer();
  const store: ZfsStore = {
    driver: row.name,
    instanceId,
    zfs,
    kind: row.kind,
    share: row.share(options, { zfs, render }),
    options: settings,
    render,
    naming: {
      maxBytes: maxIdBytes,
      template: volume?.idTemplate ? compileIdTemplate(volume.idTemplate) : undefined,
      hash: volume?.idHash?.strategy,
    },
    rules: row.rules(options.csi?.access_modes),
    topology: isLocal ? nodeTopology : undefined,
    retain: volume?.deleteStrategy === 'retain',
    log,
  };
  return {
    name: row.name,
    constrained: isLocal,
    advertised: advertisedFrom(options),
    ...zfsOperations(store),
    node: createNodePlane({
      info: isLocal ? { nodeId, topology: nodeTopology } : { nodeId },
      run,
      settings: options.node,
      mountGroup: row.mountGroup,
      accessModes: options.csi?.access_modes,
      stateDirectory,
      connection,
    }),
  };
}

function openShell(options: ZfsDriverOptions, { ssh }: DriverEnvironment, run: RunCommand): Shell {
  const connection = options.sshConnection as v.InferOutput<typeof sshConnection> | undefined;
  return connection ? (ssh ?? createSshHosts()).open(sshSettings(connection)) : createLocalShell(run);
}

/** On another host the usual places; here the names alone, for the programs may be anywhere. */
function programsOf(options: ZfsOptions, isLocal: boolean) {
  const { cli, datasetParentName, detachedSnapshotsDatasetParentName: detached = datasetParentName } = options;
  const { zfs, zpool, sudo } = cli?.paths ?? {};
  const poolOf = (dataset: string) => dataset.split('/')[0] ?? dataset;
  return {
    zfs: [zfs ?? (isLocal ? 'zfs' : '/sbin/zfs')],
    zpool: [zpool ?? (isLocal ? 'zpool' : '/sbin/zpool')],
    sudo: sudo ?? (isLocal ? 'sudo' : '/usr/bin/sudo'),
    sudoEnabled: cli?.sudoEnabled ?? false,
    pools: [...new Set([datasetParentName, detached].map(poolOf))],
  };
}

/** Templates are compiled once. */
function renderer(): ZfsStore['render'] {
  const compiled = new Map<string, ReturnType<typeof compileIdTemplate>>();
  return (template, { name = '', parameters }) => {
    if (!template.includes('{{')) return template;
    const known = compiled.get(template) ?? compileIdTemplate(template);
    compiled.set(template, known);
    return known({ name, parameters });
  };
}
