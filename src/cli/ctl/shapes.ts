/**
 * What `ctl --json` prints. These shapes are an interface: keys are added, never renamed or removed. A key whose value is not known is left
 * out; sizes are bytes; times are ISO 8601 in UTC.
 */
import { looksShortened } from '../../drivers/common/shorten-id.ts';
import { decodeName } from '../../drivers/common/volume-id.ts';
import type {
  NodeGetVolumeStatsResponse,
  Snapshot,
  Topology,
  Volume,
  VolumeCondition,
  VolumeContentSource,
} from '../../generated/csi.js';

export interface ShownVolume {
  readonly id: string;
  /** What the id stands for, when the name could not be used as it is: `web[0]` of `v:nas/web.5b0.5d`. */
  readonly name?: string;
  readonly capacityBytes?: number;
  readonly context: Readonly<Record<string, string>>;
  readonly source?: { readonly snapshot: string } | { readonly volume: string };
  readonly topology?: readonly Readonly<Record<string, string>>[];
  readonly condition?: ShownCondition;
  readonly publishedNodes?: readonly string[];
}

export interface ShownCondition {
  readonly abnormal: boolean;
  readonly message: string;
}

export interface ShownSnapshot {
  readonly id: string;
  readonly volumeId: string;
  readonly sizeBytes?: number;
  readonly createdAt?: string;
  readonly ready: boolean;
}

export interface ShownStats {
  readonly usage: readonly ShownUsage[];
  readonly condition?: ShownCondition;
}

export interface ShownUsage {
  readonly unit: 'BYTES' | 'INODES';
  readonly total: number;
  readonly used?: number;
  readonly available?: number;
}

interface Status {
  readonly publishedNodeIds: readonly string[];
  readonly volumeCondition?: VolumeCondition | undefined;
}

export function volumeShape(volume: Volume, status?: Status): ShownVolume {
  const source = volume.contentSource && sourceShape(volume.contentSource);
  const topology = volume.accessibleTopology.map((one) => ({ ...one.segments }));
  const name = nameWithin(volume.volumeId);
  return {
    id: volume.volumeId,
    ...(name !== undefined && { name }),
    ...(volume.capacityBytes > 0 && { capacityBytes: volume.capacityBytes }),
    context: { ...volume.volumeContext },
    ...(source && { source }),
    ...(topology.length > 0 && { topology }),
    ...(status?.volumeCondition && { condition: conditionShape(status.volumeCondition) }),
    ...(status && status.publishedNodeIds.length > 0 && { publishedNodes: [...status.publishedNodeIds] }),
  };
}

function nameWithin(volumeId: string): string | undefined {
  const id = volumeId.replace(/^v:[^/]+\//, '');
  const name = looksShortened(id) ? undefined : decodeName(id);
  return name === id ? undefined : name;
}

function sourceShape(source: VolumeContentSource): NonNullable<ShownVolume['source']> | undefined {
  if (source.snapshot) return { snapshot: source.snapshot.snapshotId };
  return source.volume && { volume: source.volume.volumeId };
}

function conditionShape(condition: VolumeCondition): ShownCondition {
  return { abnormal: condition.abnormal, message: condition.message };
}

export function snapshotShape(snapshot: Snapshot): ShownSnapshot {
  const time = snapshot.creationTime;
  return {
    id: snapshot.snapshotId,
    volumeId: snapshot.sourceVolumeId,
    ...(snapshot.sizeBytes > 0 && { sizeBytes: snapshot.sizeBytes }),
    ...(time && { createdAt: new Date(time.seconds * 1000 + Math.floor(time.nanos / 1e6)).toISOString() }),
    ready: snapshot.readyToUse,
  };
}

export function statsShape(stats: NodeGetVolumeStatsResponse): ShownStats {
  return {
    usage: stats.usage.map(({ unit, total, used, available }) => ({
      unit: unit === 2 ? 'INODES' : 'BYTES',
      total,
      used,
      available,
    })),
    ...(stats.volumeCondition && { condition: conditionShape(stats.volumeCondition) }),
  };
}

export function topologyShape(topology: Topology | undefined): Readonly<Record<string, string>> | undefined {
  return topology && { ...topology.segments };
}
