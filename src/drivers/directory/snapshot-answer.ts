import type { Snapshot } from '../../core/volume.ts';
import type { Directory } from './directory.ts';
import type { SnapshotRecord } from './record.ts';
import { formatSnapshotId } from './snapshot-id.ts';
import { originOf } from './snapshot-search.ts';

/** A snapshot that is there, as the orchestrator is told of it. Without a record its time is that of its folder, and its size is not known. */
export async function snapshotOf(
  directory: Directory,
  folder: string,
  record: SnapshotRecord | undefined,
): Promise<Snapshot> {
  const { files, layout, maxIdBytes } = directory;
  return {
    id: formatSnapshotId(folder, maxIdBytes),
    sourceVolumeId: (await originOf(directory, folder, record)).volumeId,
    sizeBytes: record?.sizeBytes ?? 0,
    createdAt: record?.createdAt ? new Date(record.createdAt) : await files.bornAt(layout.data('s', folder)),
    readyToUse: true,
  };
}
