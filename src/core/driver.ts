/**
 * What a storage back end is to the rest of the program.
 *
 * A driver is a value with groups of operations; a group that is missing is something the driver cannot do, and the capabilities a
 * client sees follow from that (core/capabilities.ts). Drivers know nothing of gRPC, of joining equal requests or of other connections.
 *
 * Rules for every operation: it may be repeated, and a crash between any two steps is completed by the same call or removed by delete; it
 * watches `call.signal`; it throws CallError with the code the CSI spec asks for. Making a driver does no input or output: an unreachable
 * back end shows in the calls, not at start. Operations are plain functions: they never use `this`, so that they can be taken out and wrapped.
 */
import type { CallContext } from './call.ts';
import type { AdvertisedCapabilities, NodeCapability } from './capability-names.ts';
import type { Catalog } from './catalog.ts';
import type { ActiveOperation } from './operations.ts';
import type {
  Capacity,
  CapacityRange,
  ContentSource,
  NodeInfo,
  Page,
  PageRequest,
  Parameters,
  Snapshot,
  SnapshotSpec,
  Topology,
  Volume,
  VolumeCapability,
  VolumeContext,
  VolumeSpec,
  VolumeStats,
  VolumeStatus,
} from './volume.ts';

export interface Driver {
  /** The `driver:` name of the configuration, such as `local-hostpath`. */
  readonly name: string;
  /** True when its volumes can be reached from some nodes only: VOLUME_ACCESSIBILITY_CONSTRAINTS. */
  readonly constrained: boolean;
  readonly volumes?: VolumeOperations;
  readonly snapshots?: SnapshotOperations;
  readonly expansion?: ExpansionOperations;
  readonly publication?: PublicationOperations;
  readonly node?: NodeOperations;
  /** Free space for volumes like these: GET_CAPACITY. */
  readonly capacity?: (call: CallContext, query: CapacityQuery) => Promise<Capacity>;
  /** Volumes by name, where a driver is made of several. For others core/find-volumes.ts makes one. */
  readonly catalog?: Catalog | undefined;
  /** What an operator does by hand. No orchestrator can ask for it. */
  readonly repair?: RepairOperations | undefined;
  /** Capability lists that the configuration sets in place of the ones that follow from the groups. */
  readonly advertised?: AdvertisedCapabilities | undefined;
  /** Whether the driver itself works: throws FAILED_PRECONDITION when it is set up wrongly. Not whether its storage answers. */
  probe?(call: CallContext): Promise<void>;
  /** Called when serving has begun: looks at what calls will need and logs what is wrong with it. Never rejects. */
  begin?(): Promise<void>;
  /** Work that goes on although the call that began it was answered. */
  background?(): readonly ActiveOperation[];
  /** Resolves when there is no such work. A driver that is not wanted any more is closed only then. */
  idle?(): Promise<void>;
  /** Ends timers, children, connections and what goes on in the background, so that it can be gone on with later. Calls in flight were finished or aborted before. */
  close(): Promise<void>;
}

export interface RepairOperations {
  /**
   * Makes a volume of what is on the storage already, with all that is in it. `name` is the storage's. Throws INVALID_ARGUMENT when it cannot be an
   * id, NOT_FOUND, and FAILED_PRECONDITION when it is a volume already or cannot become one: then nothing was changed.
   */
  adopt(call: CallContext, name: string): Promise<Volume>;
  /** What nobody asks for any more. What is younger than `olderThanMs` may be somebody's work, and is left out. */
  orphans(call: CallContext, olderThanMs: number): Promise<readonly Orphan[]>;
}

export interface Orphan {
  /** As the storage has it. */
  readonly name: string;
  readonly kind: 'unfinished' | 'not-shared' | 'target' | 'copy' | 'snapshot' | 'trash';
  readonly why: string;
  /** What {@link Orphan.fix} does: `share it again`. */
  readonly remedy: string;
  /** May be repeated. It destroys nothing that somebody uses. */
  fix(call: CallContext): Promise<void>;
}

export interface VolumeOperations {
  /** What a new volume can be filled from: CLONE_VOLUME when `volume` is among them. */
  readonly sources: ReadonlySet<ContentSource['type']>;
  /** The id that {@link create} will give to this request, without asking the back end. Throws INVALID_ARGUMENT for a name it cannot take. */
  idFor(spec: VolumeSpec): string;
  create(call: CallContext, spec: VolumeSpec): Promise<Volume>;
  /** Success when it is gone, was never there, or the id is not one of this driver's. FAILED_PRECONDITION while it is in use. */
  delete(call: CallContext, volumeId: string): Promise<void>;
  /** NOT_FOUND when there is no such volume; otherwise whether it can do all that is asked. */
  validate(call: CallContext, query: ValidationQuery): Promise<Validation>;
  /** GET_VOLUME. */
  get?(call: CallContext, volumeId: string): Promise<VolumeStatus>;
  /** LIST_VOLUMES. An unknown token is ABORTED. */
  list?(call: CallContext, page: PageRequest): Promise<Page<VolumeStatus>>;
  /** True when get and list tell the volumes' condition: VOLUME_CONDITION. */
  readonly reportsCondition?: boolean;
  /** MODIFY_VOLUME. */
  modify?(call: CallContext, volumeId: string, mutableParameters: Parameters): Promise<void>;
}

export interface ValidationQuery {
  readonly volumeId: string;
  readonly context: VolumeContext;
  readonly capabilities: readonly VolumeCapability[];
  readonly parameters: Parameters;
}

/** `confirmed: false` comes with the reason. */
export type Validation = { readonly confirmed: true } | { readonly confirmed: false; readonly message: string };

export interface SnapshotOperations {
  create(call: CallContext, spec: SnapshotSpec): Promise<Snapshot>;
  /** Success when it is gone or the id is not one of this driver's. */
  delete(call: CallContext, snapshotId: string): Promise<void>;
  /** GET_SNAPSHOT. NOT_FOUND when there is none. */
  get?(call: CallContext, snapshotId: string): Promise<Snapshot>;
  /** LIST_SNAPSHOTS. A filter that fits nothing gives an empty page. */
  list?(call: CallContext, filter: SnapshotFilter, page: PageRequest): Promise<Page<Snapshot>>;
}

export interface SnapshotFilter {
  readonly snapshotId?: string | undefined;
  readonly sourceVolumeId?: string | undefined;
}

export interface ExpansionOperations {
  /** ONLINE: while published; OFFLINE: only while not. */
  readonly mode: 'ONLINE' | 'OFFLINE';
  expand(call: CallContext, request: ExpandRequest): Promise<Expanded>;
}

export interface ExpandRequest {
  readonly volumeId: string;
  readonly capacity: CapacityRange;
  readonly capability?: VolumeCapability | undefined;
}

export interface Expanded {
  readonly capacityBytes: number;
  readonly nodeExpansionRequired: boolean;
}

export interface PublicationOperations {
  publish(call: CallContext, request: ControllerPublishRequest): Promise<Readonly<Record<string, string>>>;
  /** `nodeId` undefined: from all nodes. Success when it is not published, or not there at all. */
  unpublish(call: CallContext, volumeId: string, nodeId: string | undefined): Promise<void>;
}

export interface ControllerPublishRequest {
  readonly volumeId: string;
  readonly nodeId: string;
  readonly capability: VolumeCapability;
  readonly readonly: boolean;
  readonly context: VolumeContext;
}

export interface CapacityQuery {
  readonly capabilities: readonly VolumeCapability[];
  readonly parameters: Parameters;
  readonly topology?: Topology | undefined;
}

export interface NodeOperations {
  /** Capabilities of this node service beyond those that follow from its operations. */
  readonly extra: ReadonlySet<NodeCapability>;
  info(call: CallContext): Promise<NodeInfo>;
  /** Whether a volume is one that this driver made for a publication on this node, under an id that is no id of its own. */
  owns?(call: CallContext, volumeId: string): Promise<boolean>;
  /** STAGE_UNSTAGE_VOLUME, together with {@link unstage}. */
  stage?(call: CallContext, request: StageRequest): Promise<void>;
  unstage?(call: CallContext, request: UnstageRequest): Promise<void>;
  publish(call: CallContext, request: PublishRequest): Promise<void>;
  unpublish(call: CallContext, request: UnpublishRequest): Promise<void>;
  /** GET_VOLUME_STATS. */
  stats?(call: CallContext, request: StatsRequest): Promise<VolumeStats>;
  /** EXPAND_VOLUME: grows what is on the device to the device's size. */
  expand?(call: CallContext, request: NodeExpandRequest): Promise<NodeExpanded>;
}

/** A node service with all operations on volumes that have ids of their own. */
export type WholeNodeOperations = Required<Omit<NodeOperations, 'owns'>>;

export interface StageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly capability: VolumeCapability;
  readonly context: VolumeContext;
  readonly publishContext: Readonly<Record<string, string>>;
}

export interface UnstageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
}

export interface PublishRequest {
  readonly volumeId: string;
  readonly targetPath: string;
  /** Undefined when the orchestrator did not stage. */
  readonly stagingPath?: string | undefined;
  readonly capability: VolumeCapability;
  readonly readonly: boolean;
  readonly context: VolumeContext;
  readonly publishContext: Readonly<Record<string, string>>;
}

export interface UnpublishRequest {
  readonly volumeId: string;
  readonly targetPath: string;
}

export interface StatsRequest {
  readonly volumeId: string;
  /** Where the volume is published or staged. */
  readonly volumePath: string;
  readonly stagingPath?: string | undefined;
}

export interface NodeExpandRequest {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly stagingPath?: string | undefined;
  readonly capacity: CapacityRange;
  readonly capability?: VolumeCapability | undefined;
}

export interface NodeExpanded {
  /** Undefined: not known. */
  readonly capacityBytes?: number | undefined;
}
