import type { Directory } from './directory.ts';
import type { Area } from './layout.ts';
import type { SnapshotRecord, VolumeRecord } from './record.ts';

/** Tells a volume or snapshot from an earlier or later one of the same id. What democratic-csi made is known by when its folder was made. */
export async function identityOf(
  { files, layout }: Directory,
  area: Area,
  id: string,
  record: VolumeRecord | SnapshotRecord | undefined,
): Promise<string> {
  const made = record?.work ?? (await files.bornAt(layout.data(area, id))).toISOString();
  return `${area}/${id}/${made}`;
}
