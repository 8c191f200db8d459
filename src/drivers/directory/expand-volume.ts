/** ControllerExpandVolume: a new size in the record, and in the quota where there is one. Volumes never shrink. */
import type { Expanded, ExpandRequest } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import { requireCapabilities } from '../common/capability-check.ts';
import { requireRange } from '../common/capacity.ts';
import type { Call, Directory } from './directory.ts';
import { rewrite, settle } from './entry.ts';
import { isId } from './layout.ts';
import type { VolumeRecord } from './record.ts';
import { newWork } from './work-name.ts';

/** NOT_FOUND when there is no such volume, OUT_OF_RANGE when the range cannot be met without shrinking it. */
export async function expandVolume(directory: Directory, call: Call, request: ExpandRequest): Promise<Expanded> {
  const { volumeId, capacity, capability } = request;
  const entry = isId('v', volumeId) ? await settle(directory, 'v', volumeId) : undefined;
  if (entry?.state !== 'present' || entry.kind !== 'directory') {
    throw new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(volumeId)}`);
  }
  if (capability) requireCapabilities([capability], directory.rules);
  requireRange(capacity);
  const present = entry.record?.sizeBytes ?? 0;
  const wanted = capacity.requiredBytes || Math.max(present, capacity.limitBytes ?? 0);
  if (capacity.limitBytes && present > capacity.limitBytes) {
    throw new CallError(
      'OUT_OF_RANGE',
      `volume ${volumeId} has ${present} bytes already, above the limit of ${capacity.limitBytes}: volumes do not shrink`,
    );
  }
  if (wanted > present) await grow(directory, call, volumeId, entry.record, wanted);
  return { capacityBytes: Math.max(present, wanted), nodeExpansionRequired: false };
}

/** Gives a volume more room and remembers it: the quota first, so that the record never promises more than there is. */
export async function grow(
  directory: Directory,
  call: Call,
  id: string,
  record: VolumeRecord | undefined,
  sizeBytes: number,
): Promise<VolumeRecord> {
  const grown: VolumeRecord = { ...(record ?? { format: 1, work: newWork() }), sizeBytes };
  if (grown.project !== undefined) {
    await directory.quotas.resize(call, grown.project, directory.layout.data('v', id), sizeBytes);
  }
  await rewrite(directory, 'v', id, grown);
  return grown;
}
