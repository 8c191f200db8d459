/** A driver whose volumes are folders below a base path. */
import type { CallContext } from '../../core/call.ts';
import type { CapacityQuery, Driver, ExpandRequest } from '../../core/driver.ts';
import { directoryCapacity } from './capacity.ts';
import { createCopies } from './copies.ts';
import type { Directory } from './directory.ts';
import { expandVolume } from './expand-volume.ts';
import { createSnapshots } from './snapshots.ts';
import { createSweeper } from './sweep.ts';
import { directoryVolumes } from './volumes.ts';

/** Everything of a directory driver but its name and its node operations. `ready` is awaited before anything is done with the base path. */
export function directoryOperations(
  directory: Directory,
  ready?: (call: CallContext) => Promise<void>,
): Required<Pick<Driver, 'volumes' | 'snapshots' | 'expansion' | 'capacity' | 'background' | 'idle' | 'close'>> {
  const sweeper = createSweeper(directory);
  const copies = createCopies(directory.party, directory.options.snapshots.parallel_copies);
  const snapshots = createSnapshots(directory, sweeper, copies);
  const whenReady = <G extends object>(group: G): G => (ready ? afterReady(group, ready) : group);
  const { expand, capacity } = whenReady({
    async expand(call: CallContext, request: ExpandRequest) {
      await sweeper.sweep(call);
      return await expandVolume(directory, call, request);
    },
    capacity: (_call: CallContext, query: CapacityQuery) => directoryCapacity(directory, query),
  });
  return {
    volumes: whenReady(directoryVolumes(directory, sweeper, copies, snapshots)),
    snapshots: whenReady(snapshots.operations),
    expansion: { mode: 'ONLINE', expand },
    capacity,
    background: snapshots.active,
    idle: snapshots.idle,
    async close() {
      await Promise.all([sweeper.close(), snapshots.close()]);
    },
  };
}

/** The group with each operation put off until `ready` resolves. Operations are what takes a call first. */
function afterReady<G extends object>(group: G, ready: (call: CallContext) => Promise<void>): G {
  const entries = Object.entries(group).map(([name, member]) => {
    if (typeof member !== 'function' || name === 'idFor') return [name, member];
    const later = async (call: CallContext, ...rest: readonly unknown[]) => {
      await ready(call);
      return await member(call, ...rest);
    };
    return [name, later];
  });
  return Object.fromEntries(entries) as G;
}
