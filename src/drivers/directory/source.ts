/** What a new volume is filled from. */
import { CallError } from '../../core/errors.ts';
import type { ContentSource } from '../../core/volume.ts';
import type { CopyProgress } from './copy-progress.ts';
import { copyTree } from './copy-tree.ts';
import type { Call, Directory } from './directory.ts';
import { look } from './entry.ts';
import { identityOf } from './identity.ts';
import { isId } from './layout.ts';
import type { SnapshotDriver } from './options.ts';
import { formatRepositoryId, parseSnapshotId } from './snapshot-id.ts';
import type { Work } from './work.ts';

export interface FillTarget {
  readonly work: Work;
  readonly target: string;
  readonly broken: boolean;
}

export interface Source {
  /** Bytes a volume made from it needs at least; zero: not known. */
  readonly sizeBytes: number;
  /** For people. */
  readonly title: string;
  readonly engine: SnapshotDriver;
  /** Tells it from an earlier or later one of the same name; undefined where filling from it cannot be gone on with. */
  readonly identity: string | undefined;
  /** Fills the folder `target`, which is in the work folder, and waits until all is on the disk. It is empty, or what is left of an earlier try (`broken`). */
  fill(call: Call, where: FillTarget, progress: CopyProgress): Promise<void>;
}

/** Finds the source. Throws NOT_FOUND when it is not there, FAILED_PRECONDITION for a snapshot that is not ready. */
export async function openSource(
  directory: Directory,
  openSnapshot: (call: Call, id: string) => Promise<Source | undefined>,
  call: Call,
  wanted: ContentSource,
): Promise<Source> {
  const source =
    wanted.type === 'volume' ? await volumeAsSource(directory, wanted.id) : await openSnapshot(call, wanted.id);
  if (source) return source;
  throw new CallError('NOT_FOUND', `there is no ${wanted.type} ${JSON.stringify(wanted.id)} to fill the volume from`);
}

async function volumeAsSource(directory: Directory, id: string): Promise<Source | undefined> {
  const entry = isId('v', id) ? await look(directory, 'v', id) : undefined;
  if (entry?.state !== 'present' || entry.kind !== 'directory') return undefined;
  const path = directory.layout.data('v', id);
  return {
    sizeBytes: entry.record?.sizeBytes ?? 0,
    title: `volume ${id}`,
    engine: 'filecopy',
    identity: await identityOf(directory, 'v', id, entry.record),
    fill: (call, { target, broken }, progress) => copyTree(directory, call, path, target, progress, broken),
  };
}

/** The id of a source, the same for all forms it can be written in: that of a folder alone. Undefined when nothing can have it. */
export function sourceId(source: ContentSource): string | undefined {
  if (source.type === 'volume') return isId('v', source.id) ? source.id : undefined;
  const parsed = parseSnapshotId(source.id);
  if (!parsed || parsed.engine === 'filecopy') return parsed?.inner;
  return formatRepositoryId(parsed.engine, parsed.inner, Number.POSITIVE_INFINITY);
}
