import { numberOf } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { CapacityQuery } from '../../core/driver.ts';
import type { Capacity } from '../../core/volume.ts';
import { refusal } from '../common/capability-check.ts';
import { isHere } from '../common/reach.ts';
import type { ZfsStore } from './store.ts';

/** Bytes that new volumes could have. Nothing is made: while the parent dataset is not there, its pool tells. */
export async function zfsCapacity(store: ZfsStore, call: CallContext, query: CapacityQuery): Promise<Capacity> {
  const { zfs, options, topology } = store;
  if (refusal(query.capabilities, store.rules) !== undefined) return { availableBytes: 0 };
  if (topology && query.topology && !isHere(query.topology, topology)) return { availableBytes: 0 };
  const name = options.datasetParentName;
  const pool = name.split('/')[0] ?? name;
  const reading = await zfs.reading(call, { name, properties: ['available'] });
  const ofPool = await zfs.reading(call, { name: pool, properties: ['available'] });
  const [result] = await zfs.run(call, 'zfs get', [reading]);
  const failed = result.code === 0 ? undefined : new StepFailed(zfs.host, `zfs get available ${name}`, result);
  if (failed && (failed.kind !== 'missing' || pool === name)) throw failed;
  const [dataset] = failed ? await readPool() : reading.datasets(result);
  return { availableBytes: (dataset && numberOf(dataset, 'available')) ?? 0 };

  async function readPool() {
    const [answer] = await zfs.run(call, 'zfs get', [ofPool]);
    return ofPool.datasets(answer);
  }
}
