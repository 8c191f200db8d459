/** Free space: of the connection that the storage class names, or of all of them together. */
import type { CallContext } from '../core/call.ts';
import type { CapacityQuery } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import type { Capacity } from '../core/volume.ts';
import { chosenConnection, useChosen } from './chosen-connection.ts';
import type { ProxyOptions } from './config.ts';
import type { Connection } from './connection.ts';
import { namingConnection } from './connection-error.ts';
import type { Connections } from './connections.ts';
import { limited } from './limited.ts';
import { fits } from './placement.ts';

/** What a driver that cannot tell is taken to have: no scheduler turns it down for lack of space. */
const unknownCapacity: Capacity = { availableBytes: Number.MAX_SAFE_INTEGER };

/** Milliseconds one connection may take when all are asked. */
const oneLimitMs = 10_000;

export async function proxyCapacity(
  options: ProxyOptions,
  connections: Connections,
  call: CallContext,
  query: CapacityQuery,
): Promise<Capacity> {
  const name = chosenConnection(query.parameters, options.defaultConnection);
  if (name === undefined) return capacityOfAll(connections, call, query);
  return useChosen(call, connections, name, async (connection) => {
    const found = await capacityOf(call, connection, query);
    return found === 'unknown' ? unknownCapacity : found;
  });
}

/** `unknown`: the driver cannot tell. */
async function capacityOf(call: CallContext, { driver, places }: Connection, query: CapacityQuery) {
  const { topology, ...rest } = query;
  if (places && topology && !places.some((place) => fits(place, topology))) return { availableBytes: 0 };
  return (await driver.capacity?.(call, places ? rest : query)) ?? 'unknown';
}

async function capacityOfAll(connections: Connections, call: CallContext, query: CapacityQuery): Promise<Capacity> {
  const names = await connections.names();
  const outcomes = await Promise.allSettled(names.map((name) => capacityWithin(connections, call, name, query)));
  const failures = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [String(outcome.reason.message)] : [],
  );
  const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? (outcome.value ?? []) : []));
  for (const error of failures) call.log.warn('a connection is left out of the capacity', { error });
  if (failures.length > 0 && answers.length === 0) {
    throw new CallError('UNAVAILABLE', `no connection could tell its capacity: ${failures.join('; ')}`);
  }
  const known = answers.filter((answer) => answer !== 'unknown');
  return known.length === 0 && answers.length > 0 ? unknownCapacity : sum(known);
}

/** Undefined: the connection is gone. */
async function capacityWithin(connections: Connections, call: CallContext, name: string, query: CapacityQuery) {
  try {
    return await limited(call, oneLimitMs, async (bounded) => {
      const lease = await connections.find(bounded, name);
      try {
        return lease && (await capacityOf(bounded, lease.connection, query));
      } finally {
        lease?.release();
      }
    });
  } catch (error) {
    throw namingConnection(name, error);
  }
}

/** A volume is on one connection, so the largest of them bounds it. */
function sum(capacities: readonly Capacity[]): Capacity {
  const total = capacities.reduce((bytes, one) => bytes + one.availableBytes, 0);
  const largest = Math.max(0, ...capacities.map((one) => one.maximumVolumeBytes ?? one.availableBytes));
  return { availableBytes: Math.min(total, Number.MAX_SAFE_INTEGER), maximumVolumeBytes: largest };
}
