/** What a new volume is filled from. */
import { CallError } from '../../core/errors.ts';
import type { ContentSource } from '../../core/volume.ts';
import type { Directory } from './directory.ts';
import { look } from './entry.ts';
import type { Area } from './layout.ts';
import { isId } from './layout.ts';
import { folderOf, repositoryOf } from './snapshot-id.ts';

export interface Source {
  readonly area: Area;
  readonly id: string;
  readonly path: string;
  /** Bytes a volume made from it needs at least; zero: not known. */
  readonly sizeBytes: number;
  /** For people. */
  readonly title: string;
}

/** Finds the source. Throws NOT_FOUND when it is not there, UNIMPLEMENTED when it is in a repository. */
export async function openSource(directory: Directory, wanted: ContentSource): Promise<Source> {
  const area = wanted.type === 'volume' ? 'v' : 's';
  const id = sourceId(wanted);
  if (id !== undefined) {
    const entry = await look(directory, area, id);
    if (entry.state === 'present' && entry.kind === 'directory') {
      return {
        area,
        id,
        path: directory.layout.data(area, id),
        sizeBytes: entry.record?.sizeBytes ?? 0,
        title: `${wanted.type} ${id}`,
      };
    }
  }
  throw new CallError('NOT_FOUND', `there is no ${wanted.type} ${JSON.stringify(wanted.id)} to fill the volume from`);
}

/** The id of a source without the forms it can be written in; undefined when nothing can have it. */
export function sourceId(source: ContentSource): string | undefined {
  if (source.type === 'volume') return isId('v', source.id) ? source.id : undefined;
  requireNoRepository(source.id);
  return folderOf(source.id);
}

/** Throws UNIMPLEMENTED for the id of a snapshot in a restic or kopia repository. */
export function requireNoRepository(snapshotId: string): void {
  const repository = repositoryOf(snapshotId);
  if (!repository) return;
  throw new CallError(
    'UNIMPLEMENTED',
    `snapshot ${snapshotId} is in a ${repository} repository, which this version cannot reach: only filecopy snapshots work`,
  );
}
