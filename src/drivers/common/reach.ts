/** Whether volumes that live on this node can be where a request wants them. */
import { CallError } from '../../core/errors.ts';
import type { Topology, TopologyRequirement } from '../../core/volume.ts';

/** Whether a place can be this node: no segment contradicts. Keys that this node does not have are other drivers' and say nothing. */
export function isHere(place: Topology, node: Topology): boolean {
  return Object.entries(place).every(([key, value]) => !Object.hasOwn(node, key) || node[key] === value);
}

/** Throws RESOURCE_EXHAUSTED when every place that would do contradicts this node (CSI spec, CreateVolume Errors). */
export function requireHere(requirement: TopologyRequirement, node: Topology): void {
  const { requisite } = requirement;
  if (requisite.length === 0 || requisite.some((place) => isHere(place, node))) return;
  throw new CallError(
    'RESOURCE_EXHAUSTED',
    `the volume is wanted at ${requisite.map(describe).join(' or ')}, but volumes of this node are at ${describe(node)}`,
  );
}

function describe(place: Topology): string {
  const segments = Object.entries(place).map(([key, value]) => `${key}=${value}`);
  return segments.length === 0 ? '(no topology)' : segments.join(',');
}
