/**
 * Ids of snapshots: `snapshot_driver=filecopy&snapshot_id=<folder>`, a query string as democratic-csi writes them, or the bare name of the
 * folder. Both are understood everywhere; the bare one is given out where the long one would make a handle too long.
 */
import { CallError } from '../../core/errors.ts';
import { shortenId } from '../common/shorten-id.ts';
import { isId } from './layout.ts';
import type { SnapshotDriver } from './options.ts';
import { snapshotDrivers } from './options.ts';

/** The folder of a snapshot: `<volume id>-<name>`, shortened when it has more than `maxBytes`. */
export function snapshotFolder(volumeId: string, name: string, maxBytes: number): string {
  return shortenId(`${volumeId}-${name}`, maxBytes);
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
  const long = new URLSearchParams({ snapshot_driver: 'filecopy', snapshot_id: folder }).toString();
  return long.length <= maxBytes ? long : folder;
}

/** The folder that an id in either form means; undefined for an id that no snapshot of this driver has. */
export function folderOf(snapshotId: string): string | undefined {
  const { driver, inner } = parse(snapshotId);
  return driver === 'filecopy' && isId('s', inner) ? inner : undefined;
}

/** The repository that an id says its snapshot is in, when that is not a folder. */
export function repositoryOf(snapshotId: string): Exclude<SnapshotDriver, 'filecopy'> | undefined {
  const { driver } = parse(snapshotId);
  return snapshotDrivers.find((one) => one !== 'filecopy' && one === driver) as 'restic' | 'kopia' | undefined;
}

function parse(snapshotId: string): { readonly driver: string; readonly inner: string } {
  if (!snapshotId.includes('snapshot_driver=')) return { driver: 'filecopy', inner: snapshotId };
  const query = new URLSearchParams(snapshotId);
  // A plus sign that somebody wrote by hand reads as a space, which no name has.
  const inner = (query.get('snapshot_id') ?? '').replaceAll(' ', '+');
  return { driver: query.get('snapshot_driver') ?? '', inner };
}
