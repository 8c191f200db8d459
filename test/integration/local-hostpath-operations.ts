/** Operations that are interrupted at every step (local-hostpath-crash.test.ts). */
import * as v from 'valibot';
import type { CallContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { localHostpath } from '../../src/drivers/local-hostpath/type.ts';
import { snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

export const quota = process.env.CRASH_WITH_QUOTA === '1' ? 'project' : 'none';
const mib = 2 ** 20;

/** `operation`: one that a caller does not wait for has nothing waited for. */
export function optionsFor(base: string, operation?: Operation): v.InferOutput<typeof localHostpath.schema> {
  const snapshots = { answer_within: operation === 'longSnapshot' ? 0 : 3600 };
  return v.parse(localHostpath.schema, {
    driver: 'local-hostpath',
    'local-hostpath': { shareBasePath: base, controllerBasePath: base, dirPermissionsMode: '0750', quota, snapshots },
  });
}

export const sizes = { small: { requiredBytes: 50 * mib }, large: { requiredBytes: 60 * mib } };

/** All of them work on the volume `source` with the snapshot `source-first`. */
export const operations = {
  create: (driver: Driver, call: CallContext) =>
    driver.volumes?.create(call, volumeSpec('made', { capacity: sizes.small })),
  clone: (driver: Driver, call: CallContext) =>
    driver.volumes?.create(
      call,
      volumeSpec('made', { capacity: sizes.small, source: { type: 'volume', id: 'source' } }),
    ),
  restore: (driver: Driver, call: CallContext) =>
    driver.volumes?.create(
      call,
      volumeSpec('made', { capacity: sizes.small, source: { type: 'snapshot', id: 'source-first' } }),
    ),
  snapshot: (driver: Driver, call: CallContext) => driver.snapshots?.create(call, snapshotSpec('second', 'source')),
  longSnapshot: async (driver: Driver, call: CallContext) => {
    await driver.snapshots?.create(call, snapshotSpec('second', 'source'));
    await driver.idle?.();
  },
  expand: (driver: Driver, call: CallContext) =>
    driver.expansion?.expand(call, { volumeId: 'source', capacity: sizes.large }),
  delete: (driver: Driver, call: CallContext) => driver.volumes?.delete(call, 'source'),
  deleteSnapshot: (driver: Driver, call: CallContext) => driver.snapshots?.delete(call, 'source-first'),
} as const;

export type Operation = keyof typeof operations;
