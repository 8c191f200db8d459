/** The rows of the ZFS family: volumes that are file systems or block devices × how they get to the nodes × where their ZFS is. */
import * as v from 'valibot';
import type { RunCommand } from '../../backends/exec/run.ts';
import { createLocalShell } from '../../backends/shell/local-shell.ts';
import type { Shell } from '../../backends/shell/shell.ts';
import { createSshHosts } from '../../backends/ssh/ssh-hosts.ts';
import { createZfsHost, type ZfsHost } from '../../backends/zfs/zfs-host.ts';
import { advertisedFrom, type CommonOptions, commonEntries } from '../../config/common.ts';
import type { Driver } from '../../core/driver.ts';
import type { AccessMode } from '../../core/volume.ts';
import { createNodePlane } from '../../node/plane.ts';
import type { CapabilityRules } from '../common/capability-check.ts';
import { compileIdTemplate, loadTemplates } from '../common/id-template.ts';
import type { DriverEnvironment, DriverType } from '../type.ts';
import { zfsOperations } from './driver.ts';
import { type ZfsOptions, zfsEntries } from './options.ts';
import type { Share } from './share.ts';
import { sshConnection, sshSettings } from './ssh-options.ts';
import type { ZfsStore } from './store.ts';

/** What one row differs from another in. */
export interface ZfsKind {
  /** The value of `driver:`. */
  readonly name: string;
  readonly summary: string;
  readonly kind: ZfsStore['kind'];
  /** `local`: on the node itself, which alone can use its volumes. `remote`: on this host, or another one over SSH. */
  readonly where: 'local' | 'remote';
  /** The entries of the block of its share, by the block's name. */
  readonly entries: v.ObjectEntries;
  /** The blocks of its share in the smallest document. */
  readonly example: Readonly<Record<string, unknown>>;
  readonly mountGroup?: boolean | undefined;
  rules(modes: readonly AccessMode[] | undefined): CapabilityRules;
  /** `options` is the validated document. */
  share(options: Readonly<Record<string, unknown>>, parts: ShareParts): Share;
}

/** What shares are made with. */
export interface ShareParts {
  readonly zfs: ZfsHost;
  readonly render: ZfsStore['render'];
}

type Options = CommonOptions & { readonly zfs: ZfsOptions } & Readonly<Record<string, unknown>>;

const remoteEntries = { sshConnection: v.optional(sshConnection) };

export function zfsDriverType(row: ZfsKind): DriverType<Options> {
  const { name, where, entries } = row;
  const schema = v.object({
    ...commonEntries,
    zfs: v.object(zfsEntries),
    ...(where === 'remote' ? remoteEntries : {}),
    ...entries,
  });
  return {
    name,
    summary: row.summary,
    schema: schema as unknown as v.GenericSchema<unknown, Options>,
    example: { driver: name, zfs: { datasetParentName: 'tank/volumes' }, ...row.example },
    prepare: loadTemplates,
    create: (options, environment) => createDriver(row, options, environment),
  };
}

function createDriver(row: ZfsKind, options: Options, environment: DriverEnvironment): Driver {
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

function openShell(options: Options, { ssh }: DriverEnvironment, run: RunCommand): Shell {
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
