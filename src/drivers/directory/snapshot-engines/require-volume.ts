import { CallError } from '../../../core/errors.ts';
import type { Directory } from '../directory.ts';
import { look } from '../entry.ts';
import { isId } from '../layout.ts';
import type { VolumeRecord } from '../record.ts';

/** The record of the volume that a snapshot is taken of, if it has one. NOT_FOUND when there is no such volume. */
export async function requireVolume(directory: Directory, volumeId: string): Promise<VolumeRecord | undefined> {
  const volume = isId('v', volumeId) ? await look(directory, 'v', volumeId) : undefined;
  if (volume?.state === 'present' && volume.kind === 'directory') return volume.record;
  throw noVolume(volumeId);
}

export function noVolume(volumeId: string): CallError {
  return new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(volumeId)} to take a snapshot of`);
}
