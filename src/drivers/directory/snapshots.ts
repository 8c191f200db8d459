import type { CallContext } from '../../core/call.ts';
import type { SnapshotFilter, SnapshotOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Page, PageRequest, Snapshot } from '../../core/volume.ts';
import { inBatches } from '../common/in-batches.ts';
import { pageOfIds } from '../common/paging.ts';
import { looksShortened } from '../common/shorten-id.ts';
import { createSnapshot } from './create-snapshot.ts';
import type { Directory } from './directory.ts';
import { disappear, look, settle } from './entry.ts';
import { snapshotOf } from './snapshot-answer.ts';
import { folderOf } from './snapshot-id.ts';
import { snapshotFolders } from './snapshot-search.ts';
import { requireNoRepository } from './source.ts';
import type { Sweeper } from './sweep.ts';

/** The snapshot operations of a directory driver: whole copies beside the volumes. */
export function directorySnapshots(directory: Directory, sweeper: Sweeper): SnapshotOperations {
  return {
    async create(call, spec) {
      await sweeper.sweep(call);
      return await createSnapshot(directory, call, spec);
    },
    async delete(call, id) {
      requireNoRepository(id);
      const folder = folderOf(id);
      if (folder === undefined) return;
      await sweeper.sweep(call);
      await deleteSnapshot(directory, call, folder);
    },
    async get(_call, id) {
      const folder = folderOf(id);
      const snapshot = folder === undefined ? undefined : await snapshotIn(directory, folder);
      if (!snapshot) throw new CallError('NOT_FOUND', `there is no snapshot ${JSON.stringify(id)}`);
      return snapshot;
    },
    list: (_call, filter, page) => listSnapshots(directory, filter, page),
  };
}

async function deleteSnapshot(directory: Directory, call: CallContext, folder: string): Promise<void> {
  const entry = await settle(directory, 's', folder);
  if (entry.state === 'absent') return;
  const mountPoints = (await directory.mountPointsOf?.(directory.layout.data('s', folder))) ?? [];
  if (mountPoints.length > 0) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `snapshot ${folder} is in use: it is mounted at ${mountPoints.join(' and at ')}`,
    );
  }
  await call.waitingFor(`removal of snapshot ${folder}`, () => disappear(directory, call, 's', folder));
}

async function listSnapshots(
  directory: Directory,
  filter: SnapshotFilter,
  request: PageRequest,
): Promise<Page<Snapshot>> {
  const found = await candidates(directory, filter);
  const wanted = filter.sourceVolumeId === undefined ? found : await ofVolume(directory, found, filter.sourceVolumeId);
  const page = pageOfIds(wanted, request);
  const snapshots = await inBatches(page.ids, (folder) => soundSnapshotIn(directory, folder));
  const entries = snapshots.filter((snapshot) => snapshot !== undefined);
  return page.nextToken === undefined ? { entries } : { entries, nextToken: page.nextToken };
}

/** Folders that can fit the filter, by their names alone. */
async function candidates(directory: Directory, filter: SnapshotFilter): Promise<readonly string[]> {
  const { snapshotId, sourceVolumeId } = filter;
  if (snapshotId !== undefined) {
    const folder = folderOf(snapshotId);
    return folder !== undefined && (await snapshotIn(directory, folder)) ? [folder] : [];
  }
  const folders = await snapshotFolders(directory);
  if (sourceVolumeId === undefined) return folders;
  return folders.filter((folder) => folder.startsWith(`${sourceVolumeId}-`) || looksShortened(folder));
}

async function ofVolume(
  directory: Directory,
  folders: readonly string[],
  volumeId: string,
): Promise<readonly string[]> {
  const snapshots = await inBatches(folders, (folder) => soundSnapshotIn(directory, folder));
  return folders.filter((_, index) => snapshots[index]?.sourceVolumeId === volumeId);
}

/** One record that cannot be read must not hide all snapshots. */
async function soundSnapshotIn(directory: Directory, folder: string): Promise<Snapshot | undefined> {
  try {
    return await snapshotIn(directory, folder);
  } catch (error) {
    if (!(error instanceof CallError && error.code === 'DATA_LOSS')) throw error;
    directory.log.warn('a snapshot is left out of the list', { error });
    return undefined;
  }
}

async function snapshotIn(directory: Directory, folder: string): Promise<Snapshot | undefined> {
  const entry = await look(directory, 's', folder);
  return entry.state === 'present' && entry.kind === 'directory'
    ? await snapshotOf(directory, folder, entry.record)
    : undefined;
}
