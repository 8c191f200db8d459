/** What is wrong with the share of a volume that is complete, as the server has it: it may have lost what was made. */
import type { StepResult } from '../../backends/shell/steps.ts';
import type { Dataset } from '../../backends/zfs/dataset.ts';
import type { CallContext } from '../../core/call.ts';
import type { VolumeSpec } from '../../core/volume.ts';
import type { ShareLook } from './share.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { idOf, isComplete, parametersOf } from './volume-answer.ts';

/** A look that goes along in the round trip in which the volume is read. */
export interface Glance {
  readonly look: ShareLook;
  readonly result: StepResult;
}

/** Undefined when only the dataset tells, or its name would be needed for it. */
export function lookFor(
  store: ZfsStore,
  volumeId: string,
  parameters: VolumeSpec['parameters'] = {},
): ShareLook | undefined {
  try {
    return store.share.look?.({ volumeId, dataset: volumeDataset(store, volumeId), parameters });
  } catch {
    // The name of the target cannot be made without the parameters, which are kept with the volume.
    return undefined;
  }
}

/** Undefined when nothing is. One round trip when the glance was at another name than the one that is kept with the volume. */
export async function shareTrouble(
  store: ZfsStore,
  call: CallContext,
  dataset: Dataset,
  glance: Glance | undefined,
): Promise<string | undefined> {
  const { share, zfs } = store;
  if (!share.look || !isComplete(dataset)) return undefined;
  if (glance?.look.isOf(dataset)) return glance.look.trouble(glance.result);
  const request = { volumeId: idOf(dataset), dataset: dataset.name, parameters: parametersOf(dataset) ?? {} };
  const look = share.look(request, dataset);
  const [result] = await zfs.run(call, 'look', [look.step]);
  return look.trouble(result);
}
