import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { ZfsStore } from './store.ts';

/**
 * Asked before it is believed that something is not there because the dataset above it is not: without its pool, nothing is. Throws UNAVAILABLE when
 * the pool is not imported. Linux says so before anything else is asked; on other systems this is what tells.
 */
export async function requirePool({ zfs, options }: ZfsStore, call: CallContext): Promise<void> {
  const pools = [options.datasetParentName, options.detachedSnapshotsDatasetParentName].flatMap((name) => {
    return name?.split('/')[0] ?? [];
  });
  const [result] = await zfs.run(call, 'zfs list', [{ argv: zfs.zfs('list', '-H', '-o', 'name', ...new Set(pools)) }]);
  if (result.code === 0) return;
  if (!isMissing(result)) throw new StepFailed(zfs.host, `zfs list ${pools.join(' ')}`, result);
  throw new CallError('UNAVAILABLE', `${zfs.host}: the pool ${pools.join(' or ')} is not imported: see zpool import`);
}
