import type { Stored } from './repository.ts';

/** A snapshot by its tags, which are the same in all repositories. Undefined for one that is not of a volume. */
export function storedByTags(
  tags: readonly (readonly [string, string])[],
  facts: Pick<Stored, 'inner' | 'host' | 'path' | 'createdAt'>,
  sizeBytes = 0,
): Stored | undefined {
  const values = new Map(tags);
  const told = values.get('csi_volume_id');
  if (values.get('source') !== 'democratic-csi' || told === undefined) return undefined;
  // democratic-csi left out what separates these two.
  const [volumeId = '', glued] = told.split('csi_instance_id=');
  return {
    ...facts,
    volumeId,
    name: values.get('csi_snapshot_name') ?? '',
    instanceId: values.get('csi_instance_id') ?? glued,
    sizeBytes: Number(values.get('csi_size_bytes')) || sizeBytes,
  };
}
