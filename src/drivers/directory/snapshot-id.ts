/**
 * Ids of snapshots: `snapshot_driver=<engine>&snapshot_id=<inner>`, a query string as democratic-csi writes them. What is inside depends on the
 * engine: the folder of a copy, or the id that a repository gave. A bare id is a folder; that form is given out where the long one would make a
 * handle too long.
 *
 * A snapshot in a repository has no id before it is whole. One that is promised earlier gets a key instead, `<volume id>-<name>`.
 */
import { createHash } from 'node:crypto';
import { CallError } from '../../core/errors.ts';
import { shortenId } from '../common/shorten-id.ts';
import { isId } from './layout.ts';
import type { SnapshotDriver } from './options.ts';
import { snapshotDrivers } from './options.ts';

export type RepositoryName = Exclude<SnapshotDriver, 'filecopy'>;

/** The folder of a snapshot: `<volume id>-<name>`, shortened when it has more than `maxBytes`. */
export function snapshotFolder(volumeId: string, name: string, maxBytes: number): string {
  return shortenId(`${volumeId}-${name}`, maxBytes);
}

/** The key of a snapshot in a repository, such that its id has at most `maxBytes`. It is never a hexadecimal number, as the repository's own ids are. */
export function snapshotKey(engine: RepositoryName, volumeId: string, name: string, maxBytes: number): string {
  const room = maxBytes - queryOf(engine, '').length;
  const folder = `${volumeId}-${name}`;
  // These take three bytes each in a query string.
  const plain = folder.replace(/[:+]/g, '_');
  if (plain === folder) return shortenId(folder, room);
  return shortenId(`${plain}-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`, room);
}

/** Throws INVALID_ARGUMENT for a name that snapshots cannot have. */
export function requireSnapshotName(name: string): void {
  if (/^[A-Za-z0-9_:.+-]+$/.test(name)) return;
  throw new CallError(
    'INVALID_ARGUMENT',
    `the snapshot name ${JSON.stringify(name.slice(0, 64))} may only have letters, digits and _ : . + -`,
  );
}

/** The id under which a snapshot folder is given out. */
export function formatSnapshotId(folder: string, maxBytes: number): string {
  const long = queryOf('filecopy', folder);
  return long.length <= maxBytes ? long : folder;
}

/** The id under which a snapshot in a repository is given out, by its key or the repository's id. Repositories know their ids by the beginning, too. */
export function formatRepositoryId(engine: RepositoryName, inner: string, maxBytes: number): string {
  const room = maxBytes - queryOf(engine, '').length;
  return queryOf(engine, isRepositoryId(inner) ? inner.slice(0, Math.max(16, room)) : inner);
}

function queryOf(engine: SnapshotDriver, inner: string): string {
  return new URLSearchParams({ snapshot_driver: engine, snapshot_id: inner }).toString();
}

/** Whether this is an id that a repository gave. */
export function isRepositoryId(inner: string): boolean {
  return /^[0-9a-f]{8,64}$/.test(inner);
}

/** The folder that an id in either form means; undefined for an id that no copy has. */
export function folderOf(snapshotId: string): string | undefined {
  const parsed = parseSnapshotId(snapshotId);
  return parsed?.engine === 'filecopy' ? parsed.inner : undefined;
}

/** What an id says; undefined for one that no snapshot can have. */
export function parseSnapshotId(
  snapshotId: string,
): { readonly engine: SnapshotDriver; readonly inner: string } | undefined {
  if (!snapshotId.includes('snapshot_driver=')) {
    return isId('s', snapshotId) ? { engine: 'filecopy', inner: snapshotId } : undefined;
  }
  const query = new URLSearchParams(snapshotId);
  // A plus sign that somebody wrote by hand reads as a space, which no name has.
  const inner = (query.get('snapshot_id') ?? '').replaceAll(' ', '+');
  const engine = snapshotDrivers.find((one) => one === query.get('snapshot_driver'));
  return engine && isId('s', inner) ? { engine, inner } : undefined;
}
