/** Where volumes of a connection can be reached from, compared with where a request wants its volume. */
import { CallError } from '../core/errors.ts';
import type { Topology, TopologyRequirement } from '../core/volume.ts';
import { fullKey } from './labels.ts';

/** One entry of `proxy.perDriver.topology`: a set of nodes from which the connection's volumes can be reached. */
export interface Place {
  /** The labels that decide, with full keys. */
  readonly requirements: Topology;
  /** What clients are told: the same and `extra`, which is for schedulers only. */
  readonly segments: Topology;
}

export interface PlaceOptions {
  readonly requirements: Readonly<Record<string, string>>;
  readonly extra: Readonly<Record<string, string>>;
}

/** Short keys get the prefix of the node labels; those of `extra` too. */
export function placesFrom(prefix: string, options: readonly PlaceOptions[]): readonly Place[] {
  return options.map(({ requirements, extra }) => {
    const deciding = withFullKeys(prefix, requirements);
    return { requirements: deciding, segments: { ...withFullKeys(prefix, extra), ...deciding } };
  });
}

/** True when no label that both have differs. Labels of other plugins, and those the place says nothing about, do not decide. */
export function fits(place: Place, topology: Topology): boolean {
  return Object.entries(place.requirements).every(([key, value]) => {
    const wanted = Object.hasOwn(topology, key) ? topology[key] : undefined;
    return wanted === undefined || wanted === value;
  });
}

/**
 * The topologies of a new volume: the connection's places that fit at least one requisite topology, the preferred ones first, or all of them
 * when nothing is requisite. Throws RESOURCE_EXHAUSTED when none fits (CSI spec, CreateVolume errors).
 */
export function placeVolume(places: readonly Place[], wanted: TopologyRequirement): readonly Topology[] {
  const { requisite, preferred } = wanted;
  const fitting =
    requisite.length === 0 ? places : places.filter((place) => requisite.some((topology) => fits(place, topology)));
  if (fitting.length === 0) {
    throw new CallError(
      'RESOURCE_EXHAUSTED',
      `its volumes can be reached from ${listed(places.map((place) => place.requirements))}, but the volume is wanted in ` +
        `${listed(requisite)}; use a storage class or connection that reaches there`,
    );
  }
  const inOrder = new Set(preferred.flatMap((topology) => fitting.filter((place) => fits(place, topology))));
  for (const place of fitting) inOrder.add(place);
  return [...inOrder].map((place) => place.segments);
}

function withFullKeys(prefix: string, segments: Readonly<Record<string, string>>): Topology {
  return Object.fromEntries(Object.entries(segments).map(([key, value]) => [fullKey(prefix, key), value]));
}

function listed(topologies: readonly Topology[]): string {
  const shown = topologies.slice(0, 5).map(
    (topology) =>
      `{${Object.entries(topology)
        .map(([key, value]) => `${key}=${value}`)
        .join(', ')}}`,
  );
  return shown.join(' or ') + (topologies.length > shown.length ? ` and ${topologies.length - shown.length} more` : '');
}
