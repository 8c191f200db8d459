import type { Condition, Volume, VolumeStatus } from '../../core/volume.ts';
import type { Directory } from './directory.ts';
import type { Entry } from './entry.ts';
import type { VolumeRecord } from './record.ts';
import { formatSnapshotId } from './snapshot-id.ts';

/** A volume as the orchestrator is told of it. */
export function volumeOf(directory: Directory, id: string, record: VolumeRecord | undefined): Volume {
  const source = record?.source ?? undefined;
  return {
    id,
    capacityBytes: record?.sizeBytes ?? 0,
    context: directory.contextOf(id),
    source: source?.type === 'snapshot' ? { ...source, id: snapshotIdOf(source.id, directory.maxIdBytes) } : source,
    topology: directory.node && Object.keys(directory.node).length > 0 ? [directory.node] : undefined,
  };
}

/** Folders are remembered by their name alone, snapshots in repositories by their whole id. */
function snapshotIdOf(remembered: string, maxBytes: number): string {
  return remembered.includes('snapshot_driver=') ? remembered : formatSnapshotId(remembered, maxBytes);
}

/** A volume with its condition; undefined when there is none, or not yet. */
export function statusOf(directory: Directory, id: string, entry: Entry<'v'>): VolumeStatus | undefined {
  if (entry.state === 'absent' || entry.state === 'unfinished') return undefined;
  const { record } = entry;
  return {
    volume: volumeOf(directory, id, record),
    condition: conditionOf(directory, id, entry),
    ...(record?.parameters && { parameters: record.parameters }),
  };
}

function conditionOf(
  { layout }: Directory,
  id: string,
  entry: Exclude<Entry<'v'>, { state: 'absent' | 'unfinished' }>,
): Condition {
  const path = layout.data('v', id);
  if (entry.state === 'lost') return { abnormal: true, message: `its directory ${path} is missing` };
  if (entry.kind === 'other') return { abnormal: true, message: `${path} is not a directory` };
  return { abnormal: false, message: 'its directory is there' };
}
