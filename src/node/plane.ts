/** The node service of every driver: staging, publishing, statistics and growth of volumes on the machine this process runs on. */
import type { RunCommand } from '../backends/exec/run.ts';
import { processTimeLimits, type TimeLimits } from '../backends/exec/time-limits.ts';
import type { NodeCapability } from '../core/capability-names.ts';
import type { WholeNodeOperations } from '../core/driver.ts';
import type { AccessMode, NodeInfo } from '../core/volume.ts';
import type { MakeAttacher } from './attachers/attacher.ts';
import { attachers as builtIn } from './attachers/index.ts';
import { expandVolume } from './expand.ts';
import { readMountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { publishVolume } from './publish.ts';
import { openRecords, type RecordsOptions } from './records/records.ts';
import { stageVolume } from './stage.ts';
import { volumeStats } from './stats.ts';
import type { NodeSettings } from './tools.ts';
import { unpublishVolume } from './unpublish.ts';
import { unstageVolume } from './unstage.ts';

export interface NodePlaneOptions {
  /** What NodeGetInfo answers. */
  readonly info: NodeInfo;
  readonly run: RunCommand;
  /** The connection's `node` block. */
  readonly settings?: NodeSettings | undefined;
  /** Offers VOLUME_MOUNT_GROUP: files of file systems without owners belong to the group of the request. Default: no. */
  readonly mountGroup?: boolean | undefined;
  /** `csi.access_modes` of the configuration: those named there are not refused for what several nodes could do to each other. */
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** By `node_attach_driver`. Default: all there are. */
  readonly attachers?: Readonly<Record<string, MakeAttacher>> | undefined;
  /** Default: those of this process's environment. */
  readonly limits?: TimeLimits | undefined;
  /** Where it is remembered what was attached: {@link DriverEnvironment.stateDirectory}. Undefined: nowhere. */
  readonly stateDirectory?: string | undefined;
  /** Where the host's root directory is mounted, if it is. Default: /host. */
  readonly hostRoot?: string | undefined;
  /** The connection's name behind the proxy. */
  readonly connection?: string | undefined;
  /** Default: this process's clock and this run of the machine. */
  readonly records?: Pick<RecordsOptions, 'now' | 'bootId'> | undefined;
}

/** Makes a node service. No input or output happens before the first call. */
export function createNodePlane(options: NodePlaneOptions): WholeNodeOperations {
  const plane = makePlane(options);
  const extra: readonly NodeCapability[] = [
    'VOLUME_CONDITION',
    ...(plane.mountGroup ? ['VOLUME_MOUNT_GROUP' as const] : []),
  ];
  return {
    extra: new Set(extra),
    info: async () => options.info,
    stage: (call, request) => stageVolume(call, plane, request),
    unstage: (call, request) => unstageVolume(call, plane, request),
    publish: (call, request) => publishVolume(call, plane, request),
    unpublish: (call, request) => unpublishVolume(call, plane, request),
    stats: (call, request) => volumeStats(call, plane, request),
    expand: (call, request) => expandVolume(call, plane, request),
  };
}

/** The parts that the operations work with. */
export function makePlane(options: Omit<NodePlaneOptions, 'info'>): NodePlane {
  const { stateDirectory, hostRoot, connection, mountGroup = false, accessModes } = options;
  const tools = {
    run: options.run,
    limits: options.limits ?? processTimeLimits(),
    settings: options.settings ?? {},
    readTable: () => readMountTable(),
    hostRoot,
  };
  const made = Object.entries(options.attachers ?? builtIn).map(([name, make]) => [name, make(tools)] as const);
  const attachers = Object.fromEntries(made);
  return {
    tools,
    attachers,
    mountGroup,
    accessModes,
    connection,
    records: openRecords({ stateDirectory, ...options.records }),
  };
}
