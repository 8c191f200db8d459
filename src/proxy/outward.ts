/** What a connection's driver answers, with the ids that clients see. */
import type { ContentSource, Page, Snapshot, Volume, VolumeStatus } from '../core/volume.ts';
import { encodeHandle } from './handle.ts';

export function outwardVolume(connection: string, { source, ...volume }: Volume): Volume {
  return {
    ...volume,
    id: encodeHandle('volume', connection, volume.id),
    ...(source && { source: outwardSource(connection, source) }),
  };
}

/** Without the nodes it is published on: those are known by ids that only the connection's storage uses. */
export function outwardStatus(connection: string, { volume, condition, parameters }: VolumeStatus): VolumeStatus {
  return {
    volume: outwardVolume(connection, volume),
    ...(condition && { condition }),
    ...(parameters && { parameters }),
  };
}

export function outwardSnapshot(connection: string, snapshot: Snapshot): Snapshot {
  return {
    ...snapshot,
    id: encodeHandle('snapshot', connection, snapshot.id),
    sourceVolumeId: encodeHandle('volume', connection, snapshot.sourceVolumeId),
  };
}

function outwardSource(connection: string, { type, id }: ContentSource): ContentSource {
  return { type, id: encodeHandle(type, connection, id) };
}

export function mapEntries<A, B>(page: Page<A>, map: (entry: A) => B): Page<B> {
  return { ...page, entries: page.entries.map(map) };
}
