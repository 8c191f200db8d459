/** The vocabulary of storage: what drivers take and give, in plain values. Sizes are bytes as numbers; "absent" is `undefined`, never zero. */

/** Labels of a place, `domain/key` → value (CSI spec, `Topology.segments`). */
export type Topology = Readonly<Record<string, string>>;

/** Strings a driver gave out with a volume and gets back on every node call (`volume_context`). */
export type VolumeContext = Readonly<Record<string, string>>;

/** Free parameters of a storage or snapshot class. */
export type Parameters = Readonly<Record<string, string>>;

/** CSI spec, `VolumeCapability.AccessMode.Mode`. */
export const accessModes = [
  'UNKNOWN',
  'SINGLE_NODE_WRITER',
  'SINGLE_NODE_READER_ONLY',
  'MULTI_NODE_READER_ONLY',
  'MULTI_NODE_SINGLE_WRITER',
  'MULTI_NODE_MULTI_WRITER',
  'SINGLE_NODE_SINGLE_WRITER',
  'SINGLE_NODE_MULTI_WRITER',
] as const;
export type AccessMode = (typeof accessModes)[number];

/** How a volume is wanted: as a mounted file system or as a block device. */
export type VolumeCapability = MountCapability | BlockCapability;

export interface MountCapability {
  readonly type: 'mount';
  readonly mode: AccessMode;
  /** Empty: the driver chooses. */
  readonly fsType: string;
  readonly mountFlags: readonly string[];
  /** Group id or name that should own the files; empty: not asked for. */
  readonly mountGroup: string;
}

export interface BlockCapability {
  readonly type: 'block';
  readonly mode: AccessMode;
}

/** Wanted size. Both ends may be missing; a zero on the wire is a missing end. */
export interface CapacityRange {
  readonly requiredBytes?: number | undefined;
  readonly limitBytes?: number | undefined;
}

export interface ContentSource {
  readonly type: 'snapshot' | 'volume';
  readonly id: string;
}

/** Where a volume must (`requisite`: any one of them) and should (`preferred`: best first) be reachable from. Empty lists say nothing. */
export interface TopologyRequirement {
  readonly requisite: readonly Topology[];
  readonly preferred: readonly Topology[];
}

/** What CreateVolume asks for. */
export interface VolumeSpec {
  readonly name: string;
  readonly capacity: CapacityRange;
  readonly capabilities: readonly VolumeCapability[];
  readonly parameters: Parameters;
  readonly mutableParameters: Parameters;
  readonly source?: ContentSource | undefined;
  readonly topology: TopologyRequirement;
}

export interface Volume {
  readonly id: string;
  /** Zero: not known or not enforced. */
  readonly capacityBytes: number;
  readonly context: VolumeContext;
  readonly source?: ContentSource | undefined;
  /** Places it can be reached from; undefined: from everywhere. */
  readonly topology?: readonly Topology[] | undefined;
}

export interface Condition {
  readonly abnormal: boolean;
  /** For people: what is wrong, or that all is well. */
  readonly message: string;
}

/** A volume as found, with its state. */
export interface VolumeStatus {
  readonly volume: Volume;
  readonly condition?: Condition | undefined;
  readonly publishedNodeIds?: readonly string[] | undefined;
  /** The parameters of the request that made it; undefined where the back end does not remember them. */
  readonly parameters?: Parameters | undefined;
}

/** What CreateSnapshot asks for. */
export interface SnapshotSpec {
  readonly name: string;
  readonly sourceVolumeId: string;
  readonly parameters: Parameters;
}

export interface Snapshot {
  readonly id: string;
  readonly sourceVolumeId: string;
  /** Bytes a volume restored from it needs at least; zero: not known. */
  readonly sizeBytes: number;
  readonly createdAt: Date;
  readonly readyToUse: boolean;
}

export interface Capacity {
  readonly availableBytes: number;
  readonly maximumVolumeBytes?: number | undefined;
  readonly minimumVolumeBytes?: number | undefined;
}

/** One page of a list. `nextToken` is given while there is more. */
export interface Page<T> {
  readonly entries: readonly T[];
  readonly nextToken?: string | undefined;
}

/** Which page is wanted. `limit` undefined: as many as there are. */
export interface PageRequest {
  readonly limit?: number | undefined;
  readonly token?: string | undefined;
}

/** Use of a volume on a node, in bytes or inodes. */
export interface Usage {
  readonly unit: 'BYTES' | 'INODES';
  readonly total: number;
  readonly used?: number | undefined;
  readonly available?: number | undefined;
}

export interface VolumeStats {
  readonly usage: readonly Usage[];
  readonly condition?: Condition | undefined;
}

export interface NodeInfo {
  readonly nodeId: string;
  readonly topology?: Topology | undefined;
  /** Undefined: no limit. */
  readonly maxVolumes?: number | undefined;
}
