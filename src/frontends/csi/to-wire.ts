/** What drivers answer → CSI messages. */
import type { Condition, ContentSource, Snapshot, Topology, Usage, Volume, VolumeStatus } from '../../core/volume.ts';
import * as csi from '../../generated/csi.js';

export function volumeTo(volume: Volume): csi.Init<csi.Volume> {
  return {
    volumeId: volume.id,
    capacityBytes: volume.capacityBytes,
    volumeContext: { ...volume.context },
    ...(volume.source && { contentSource: sourceTo(volume.source) }),
    accessibleTopology: (volume.topology ?? []).map(topologyTo),
  };
}

function sourceTo(source: ContentSource): csi.Init<csi.VolumeContentSource> {
  return source.type === 'snapshot' ? { snapshot: { snapshotId: source.id } } : { volume: { volumeId: source.id } };
}

export function topologyTo(topology: Topology): csi.Init<csi.Topology> {
  return { segments: { ...topology } };
}

/** Serves ControllerGetVolume and ListVolumes, whose entries have the same fields. */
export function statusTo({ volume, condition, publishedNodeIds }: VolumeStatus) {
  return {
    volume: volumeTo(volume),
    status: {
      publishedNodeIds: [...(publishedNodeIds ?? [])],
      ...(condition && { volumeCondition: conditionTo(condition) }),
    },
  };
}

export function conditionTo(condition: Condition): csi.Init<csi.VolumeCondition> {
  return { abnormal: condition.abnormal, message: condition.message };
}

export function snapshotTo(snapshot: Snapshot): csi.Init<csi.Snapshot> {
  const milliseconds = snapshot.createdAt.getTime();
  const seconds = Math.floor(milliseconds / 1000);
  return {
    snapshotId: snapshot.id,
    sourceVolumeId: snapshot.sourceVolumeId,
    sizeBytes: snapshot.sizeBytes,
    creationTime: { seconds, nanos: (milliseconds - seconds * 1000) * 1_000_000 },
    readyToUse: snapshot.readyToUse,
  };
}

export function usageTo(usage: Usage): csi.Init<csi.VolumeUsage> {
  return {
    unit: csi.VolumeUsage.Unit[usage.unit],
    total: usage.total,
    ...(usage.used !== undefined && { used: usage.used }),
    ...(usage.available !== undefined && { available: usage.available }),
  };
}
