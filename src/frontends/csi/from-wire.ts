/** CSI messages → the plain values that drivers work with. Absent and zero are one thing on the wire; here both are `undefined`. */
import { CallError } from '../../core/errors.ts';
import {
  accessModes,
  type CapacityRange,
  type ContentSource,
  type PageRequest,
  type Topology,
  type TopologyRequirement,
  type VolumeCapability,
} from '../../core/volume.ts';
import type * as csi from '../../generated/csi.js';

/** Throws INVALID_ARGUMENT for a capability without an access type or with a mode that no one has defined. */
export function capabilityFrom(message: csi.VolumeCapability | undefined): VolumeCapability {
  const mode = accessModes[message?.accessMode?.mode ?? 0];
  if (mode === undefined) throw invalid(`access mode ${message?.accessMode?.mode} is not known`);
  if (message?.block) return { type: 'block', mode };
  if (!message?.mount) throw invalid('volume_capability.access_type is required: mount or block');
  const { fsType, mountFlags, volumeMountGroup } = message.mount;
  return {
    type: 'mount',
    mode,
    fsType: fsType ?? '',
    mountFlags: mountFlags ?? [],
    mountGroup: volumeMountGroup ?? '',
  };
}

export function capabilitiesFrom(messages: readonly csi.VolumeCapability[] | undefined): VolumeCapability[] {
  return (messages ?? []).map(capabilityFrom);
}

/** Throws OUT_OF_RANGE for a size that is negative or beyond 2^53-1 bytes, and for a required size above the limit. */
export function capacityFrom(message: csi.CapacityRange | undefined): CapacityRange {
  const requiredBytes = sizeFrom('required_bytes', message?.requiredBytes);
  const limitBytes = sizeFrom('limit_bytes', message?.limitBytes);
  if (requiredBytes !== undefined && limitBytes !== undefined && requiredBytes > limitBytes) {
    throw new CallError('OUT_OF_RANGE', `required_bytes ${requiredBytes} is more than limit_bytes ${limitBytes}`);
  }
  return { requiredBytes, limitBytes };
}

function sizeFrom(name: string, value: number | undefined): number | undefined {
  if (!value) return undefined;
  if (value < 0 || !Number.isSafeInteger(value)) {
    throw new CallError('OUT_OF_RANGE', `${name} must be between 0 and ${Number.MAX_SAFE_INTEGER} bytes`);
  }
  return value;
}

export function sourceFrom(message: csi.VolumeContentSource | undefined): ContentSource | undefined {
  if (!message) return undefined;
  if (message.snapshot) return { type: 'snapshot', id: idFrom('snapshot_id', message.snapshot.snapshotId) };
  if (message.volume) return { type: 'volume', id: idFrom('volume_id', message.volume.volumeId) };
  throw invalid('volume_content_source names neither a snapshot nor a volume');
}

function idFrom(name: string, id: string | undefined): string {
  if (!id) throw invalid(`volume_content_source.${name} is required`);
  return id;
}

/** SwarmKit always sends a requirement, with two empty lists: that is no requirement. */
export function requirementFrom(message: csi.TopologyRequirement | undefined): TopologyRequirement {
  const topologies = (list: readonly csi.Topology[] | undefined) =>
    (list ?? []).map(topologyFrom).filter((one) => one !== undefined);
  return { requisite: topologies(message?.requisite), preferred: topologies(message?.preferred) };
}

export function topologyFrom(message: csi.Topology | undefined): Topology | undefined {
  const segments = message?.segments ?? {};
  return Object.keys(segments).length > 0 ? segments : undefined;
}

/** Throws INVALID_ARGUMENT for a negative number of entries. */
export function pageFrom(request: {
  maxEntries?: number | undefined;
  startingToken?: string | undefined;
}): PageRequest {
  const limit = request.maxEntries ?? 0;
  if (limit < 0) throw invalid(`max_entries must not be negative, it is ${limit}`);
  return { limit: limit || undefined, token: request.startingToken || undefined };
}

function invalid(message: string): CallError {
  return new CallError('INVALID_ARGUMENT', message);
}
