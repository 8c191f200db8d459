/** Finding out which volume and name a snapshot folder belongs to. Folders that democratic-csi made have no record, and their name can be read in several ways. */

import { looksShortened } from '../common/shorten-id.ts';
import type { Directory } from './directory.ts';
import { idsOfRecords, isId } from './layout.ts';
import type { SnapshotRecord } from './record.ts';
import { readRecord } from './record.ts';

export interface Origin {
  readonly volumeId: string;
  readonly name: string;
}

/** All snapshot folders, finished or not. */
export async function snapshotFolders({ files, layout }: Directory): Promise<readonly string[]> {
  const [names, records] = await Promise.all([
    files.list(layout.dataFolder('s')),
    files.list(layout.recordFolder('s')),
  ]);
  return [...new Set([...names.filter((name) => isId('s', name)), ...idsOfRecords('s', records)])];
}

/**
 * Where a snapshot comes from: its record, else the longest id of a volume that is there, else a guess, since its volume is gone. A guess is
 * good enough to be listed, not to refuse anything by.
 */
export async function originOf(
  directory: Directory,
  folder: string,
  record: SnapshotRecord | undefined,
): Promise<Origin & { readonly guessed: boolean }> {
  if (record?.sourceVolumeId !== undefined && record.name !== undefined) {
    return { volumeId: record.sourceVolumeId, name: record.name, guessed: false };
  }
  for (let at = folder.lastIndexOf('-'); at > 0; at = folder.lastIndexOf('-', at - 1)) {
    const split = splitAt(folder, at);
    const { files, layout } = directory;
    if (isId('v', split.volumeId) && (await files.kindOf(layout.data('v', split.volumeId)))) {
      return { ...split, guessed: false };
    }
  }
  const snapshotter = /-snapshot-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.exec(folder);
  const at = snapshotter?.index ?? folder.lastIndexOf('-');
  return { ...(at > 0 ? splitAt(folder, at) : { volumeId: folder, name: folder }), guessed: true };
}

/** Another snapshot folder than `folder` that holds a snapshot of this name, with the volume it was taken of. */
export async function otherOfName(directory: Directory, name: string, folder: string): Promise<Origin | undefined> {
  const { files, layout } = directory;
  for (const other of await snapshotFolders(directory)) {
    if (other === folder || !(other.endsWith(`-${name}`) || looksShortened(other))) continue;
    const origin = await originOf(directory, other, await readRecord(files, layout, 's', other));
    if (origin.name === name && !origin.guessed) return origin;
  }
  return undefined;
}

function splitAt(folder: string, at: number): Origin {
  return { volumeId: folder.slice(0, at), name: folder.slice(at + 1) };
}
