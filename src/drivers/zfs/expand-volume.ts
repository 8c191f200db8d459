import { numberOf } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { Expanded, ExpandRequest } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import { roundUp } from '../../core/sizes.ts';
import { requireCapabilities } from '../common/capability-check.ts';
import { requireRange } from '../common/capacity.ts';
import type { ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';
import { capacityOf, sizeOf } from './volume-answer.ts';
import { readVolume } from './volumes.ts';
import { asAssignments, sizeProperties } from './wanted-properties.ts';

/** ControllerExpandVolume. Volumes never shrink. NOT_FOUND when there is no such volume, OUT_OF_RANGE when the range cannot be met. */
export async function expandVolume(store: ZfsStore, call: CallContext, request: ExpandRequest): Promise<Expanded> {
  const { volumeId, capacity, capability } = request;
  const { zfs } = store;
  const volume = await readVolume(store, call, volumeId);
  if (capability) requireCapabilities([capability], store.rules);
  requireRange(capacity);
  const present = sizeOf(store, volume) ?? 0;
  const wanted = roundUp(
    capacity.requiredBytes || Math.max(present, capacity.limitBytes ?? 0),
    store.kind === 'volume' ? (numberOf(volume, 'volblocksize') ?? 1) : 1,
  );
  const result = Math.max(present, wanted);
  if (capacity.limitBytes && result > capacity.limitBytes) {
    throw new CallError(
      'OUT_OF_RANGE',
      `${volume.name} would have ${result} bytes, above the limit of ${capacity.limitBytes}: volumes do not shrink`,
    );
  }
  if (wanted > present) {
    const properties = {
      ...(store.kind === 'volume' ? { volsize: String(wanted) } : sizeProperties(store, wanted)),
      [userProperties.size]: String(wanted),
    };
    const [set] = await zfs.run(call, 'zfs set', [{ argv: zfs.zfs('set', ...asAssignments(properties), volume.name) }]);
    if (set.code !== 0) throw new StepFailed(zfs.host, `zfs set … ${volume.name}`, set);
  }
  const enforced = capacityOf(store, volume) > 0 || store.options.datasetEnableQuotas;
  return {
    capacityBytes: store.kind === 'volume' || enforced ? result : 0,
    nodeExpansionRequired: store.kind === 'volume',
  };
}
