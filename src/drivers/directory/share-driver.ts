/** A driver whose volumes are folders on a share of a server, which nodes mount one by one. The rows differ in what the share is. */
import { posix } from 'node:path';
import * as v from 'valibot';
import { processTimeLimits } from '../../backends/exec/time-limits.ts';
import { advertisedFrom, type CommonOptions, commonEntries } from '../../config/common.ts';
import type { Driver } from '../../core/driver.ts';
import { readMountTable } from '../../node/mount-table.ts';
import { createNodePlane } from '../../node/plane.ts';
import { hostKey, pathKey, type ShareFamily, type ShareSource } from '../../node/share-source.ts';
import { fileSystemRules } from '../common/capability-check.ts';
import { compileIdTemplate, loadTemplates } from '../common/id-template.ts';
import type { DriverEnvironment, DriverType } from '../type.ts';
import type { Directory } from './directory.ts';
import { directoryOperations } from './driver.ts';
import type { Files } from './files.ts';
import { localFiles } from './files.ts';
import { createFilesInChild } from './files-in-child.ts';
import { createHostView } from './host-view.ts';
import { layoutOf } from './layout.ts';
import { partyOf } from './party.ts';
import { createProjectQuotas } from './project-quota.ts';
import { createShareGuard } from './share-guard.ts';
import { createShareMount } from './share-mount.ts';
import { type ShareOptions, shareEntries } from './share-options.ts';
import { createShareSight, shareText } from './share-sight.ts';

/** What one kind of share differs from another in. */
export interface ShareKind {
  /** The value of `driver:`. */
  readonly name: string;
  readonly summary: string;
  /** The name of its configuration block. */
  readonly block: string;
  /** Its `node_attach_driver`. */
  readonly attachDriver: ShareFamily;
  readonly fsTypes: readonly string[];
  /** Entries of its block in place of the usual ones. */
  readonly entries?: v.ObjectEntries;
  /** Entries of its block that the smallest document has. */
  readonly example: Readonly<Record<string, string>>;
  /** Options of the controller's own mount. */
  readonly mountOptions?: readonly string[];
  /** Milliseconds that a server may take for one thing although it is there, where that can be more than the usual limit. */
  readonly patienceMs?: number;
  /** Files of such mounts belong to the group of a request: VOLUME_MOUNT_GROUP. */
  readonly mountGroup?: boolean;
  /** The `share` of a volume's context, from the path on the server. */
  shareOf(path: string): string;
  /** The share, for people. */
  sourceOf(host: string, share: string): string;
}

type Options = CommonOptions & Readonly<Record<string, unknown>>;

export function shareDriverType(kind: ShareKind): DriverType<Options> {
  const { name, block } = kind;
  const schema = v.object({ ...commonEntries, [block]: v.object({ ...shareEntries, ...kind.entries }) });
  return {
    name,
    summary: kind.summary,
    schema: schema as unknown as v.GenericSchema<unknown, Options>,
    example: { driver: name, [block]: kind.example },
    sharePlace(options) {
      const { controllerBasePath, controllerMount, controllerMountSource } = options[block] as ShareOptions;
      const share = shareOf(kind, options[block] as ShareOptions);
      const isRenamed = controllerMountSource !== undefined;
      return { base: controllerBasePath, share: shareText(share), path: share.path, mount: controllerMount, isRenamed };
    },
    async prepare(options) {
      if (options._private?.csi?.volume?.idTemplate) await loadTemplates();
    },
    create: (options, environment) => createDriver(kind, options, environment),
  };
}

function createDriver(kind: ShareKind, options: Options, environment: DriverEnvironment): Driver {
  const settings = options[kind.block] as ShareOptions;
  const { nodeId, connection, stateDirectory, run, log } = environment;
  const { shareHost: host, controllerBasePath: base, controllerMount } = settings;
  const context = contextMaker(kind, options, settings);
  const title = kind.sourceOf(host, kind.shareOf(settings.shareBasePath));
  const sight = createShareSight(shareOf(kind, settings), kind.fsTypes[0] ?? '', settings.controllerMountSource);
  const limits = processTimeLimits();
  const tools = { run, limits, settings: {}, readTable: readMountTable };
  const isLocal = controllerMount === 'local';
  const onStale = () => guard.stale();
  const limitMs = Math.max(limits.mount, kind.patienceMs ?? 0);
  const child = createFilesInChild({ base, title: `${title} at ${base}`, log, limitMs, onStale });
  const files = isLocal ? localFiles : child;
  const mount =
    controllerMount === 'auto'
      ? createShareMount({
          place: base,
          context: context(''),
          flags: [...(kind.mountOptions ?? []), ...(settings.controllerMountOptions ?? [])],
          credentials: settings.controllerMountCredentials,
          sight,
          title,
          tools,
          log,
        })
      : undefined;
  const held = mount && { ...mount, hold: child.hold };
  const guard = createShareGuard({ base, host, title, sight, files, readTable: readMountTable, mount: held, log });
  const mountPointsOf = async (path: string) =>
    sight.mountPointsOf(await readMountTable(), posix.relative(settings.controllerBasePath, path), guard.shown());
  const directory = directoryOf(kind, options, environment, { files, context, mountPointsOf });
  const operations = directoryOperations(directory, isLocal ? undefined : guard.ready);
  return {
    name: kind.name,
    constrained: false,
    advertised: advertisedFrom(options),
    ...operations,
    node: createNodePlane({
      info: { nodeId },
      run,
      settings: options.node,
      mountGroup: kind.mountGroup,
      accessModes: options.csi?.access_modes,
      connection,
      stateDirectory,
    }),
    async close() {
      await operations.close();
      await child.close();
      await mount?.close();
      guard.close();
    },
  };
}

function shareOf(kind: ShareKind, { shareHost, shareBasePath }: ShareOptions): ShareSource {
  return { family: kind.attachDriver, host: hostKey(shareHost), path: pathKey(kind.shareOf(shareBasePath)) };
}

type ContextMaker = (path: string) => Readonly<Record<string, string>>;

/** The context of what is at a path below the base path. */
function contextMaker(
  { name, attachDriver, shareOf }: ShareKind,
  options: Options,
  settings: ShareOptions,
): ContextMaker {
  return (path) => ({
    node_attach_driver: attachDriver,
    server: settings.shareHost,
    share: shareOf(posix.join(settings.shareBasePath, path)),
    provisioner_driver: name,
    ...(options.instance_id && { provisioner_driver_instance_id: options.instance_id }),
  });
}

interface Parts {
  readonly files: Files;
  readonly context: ContextMaker;
  readonly mountPointsOf: NonNullable<Directory['mountPointsOf']>;
}

function directoryOf(kind: ShareKind, options: Options, environment: DriverEnvironment, parts: Parts): Directory {
  const { run, log, maxIdBytes } = environment;
  const { files, context, mountPointsOf } = parts;
  const settings = options[kind.block] as ShareOptions;
  const volume = options._private?.csi?.volume;
  const layout = layoutOf(settings.controllerBasePath);
  const hostView = createHostView(layout.base, [layout.base], run);
  return {
    layout,
    files,
    hostView,
    run,
    log,
    options: settings,
    naming: {
      maxBytes: maxIdBytes,
      template: volume?.idTemplate ? compileIdTemplate(volume.idTemplate) : undefined,
      hash: volume?.idHash?.strategy,
    },
    rules: fileSystemRules(kind.fsTypes, options.csi?.access_modes),
    party: partyOf(environment, { instanceId: options.instance_id, perNode: false }),
    maxIdBytes,
    contextOf: (volumeId) => context(posix.join('v', volumeId)),
    mountPointsOf,
    onServer: settings.controllerMount !== 'local',
    quotas: createProjectQuotas({ enforce: false, layout, files, hostView, run }),
    retain: volume?.deleteStrategy === 'retain',
  };
}
