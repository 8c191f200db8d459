import { CallError } from '../../../core/errors.ts';
import type { SnapshotSpec } from '../../../core/volume.ts';

/** The name of a snapshot belongs to one of another volume. */
export function nameTaken(spec: SnapshotSpec, volumeId: string, name = spec.name): CallError {
  const what = name === spec.name ? 'a snapshot of this name' : `its folder, by snapshot ${name},`;
  return new CallError(
    'ALREADY_EXISTS',
    `snapshot ${spec.name} of ${spec.sourceVolumeId}: ${what} exists of volume ${volumeId}`,
  );
}

export function otherParameters(name: string): CallError {
  return new CallError('ALREADY_EXISTS', `snapshot ${name} exists already, with other parameters`);
}
