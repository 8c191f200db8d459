/** A volume that was to be deleted, and could not be: it is shared again, as it was. */
import type { Steps } from '../../backends/shell/steps.ts';
import { valueIn } from '../../backends/zfs/dataset.ts';
import { detachedContext } from '../../core/call.ts';
import { asCallError } from '../../core/errors.ts';
import { shareSteps } from './finish-volume.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { isComplete, isManaged, parametersOf, volumeProperties } from './volume-answer.ts';

/** Milliseconds for all of it: whoever asked for the deletion may be gone. */
const limitMs = 60_000;

/** Throws nothing: why the volume is still there is what the caller wants to know, and the same request for it shares it, too. */
export async function bringBack(store: ZfsStore, volumeId: string): Promise<void> {
  const { zfs, share, log } = store;
  const name = volumeDataset(store, volumeId);
  const call = detachedContext(log, AbortSignal.timeout(limitMs));
  try {
    const dataset = await zfs.readOne(call, name, volumeProperties(store));
    if (!dataset || !isManaged(dataset) || !isComplete(dataset)) return;
    if (share.withdraw) {
      await share.publish(call, { volumeId, dataset: name, parameters: parametersOf(dataset) ?? {} }, dataset);
      return;
    }
    const isUnmounted = valueIn(dataset, 'mounted') === 'no' && valueIn(dataset, 'mountpoint')?.startsWith('/');
    const mount = isUnmounted ? [{ argv: zfs.zfs('mount', name), goOn: 'any' }] : [];
    const [first, ...others] = [...mount, ...shareSteps(store, name)];
    if (first) await zfs.run(call, 'zfs share', [first, ...others] as Steps);
  } catch (error) {
    log.warn('a volume that could not be deleted is not shared any more', {
      dataset: name,
      error: asCallError(error).message,
    });
  }
}
