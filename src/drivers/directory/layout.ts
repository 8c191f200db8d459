/**
 * Where everything is below a base path.
 *
 *     <base>/v/<volume id>                   a volume, as democratic-csi lays them out
 *     <base>/s/<volume id>-<name>            a snapshot, likewise
 *     <base>/.switchboard/{v,s}/<id>.json    what is remembered about it (record.ts)
 *     <base>/.switchboard/p/<number>         a project quota number in use (project-quota.ts)
 *     <base>/.switchboard/c/<key>.json       a snapshot that is still copied (snapshot-promise.ts)
 *     <base>/.switchboard/tmp/<work>/        what is being made or removed (work.ts)
 */
import { posix } from 'node:path';
import { isVolumeId } from '../common/volume-id.ts';

/** Volumes or snapshots, by the name of their folder. */
export type Area = 'v' | 's';

export interface Layout {
  readonly base: string;
  readonly tmp: string;
  readonly projects: string;
  /** Made when it is first needed. */
  readonly promises: string;
  /** All folders, parents first; {@link tmp} is the last one, so that once it is there the others are. */
  readonly folders: readonly string[];
  dataFolder(area: Area): string;
  recordFolder(area: Area): string;
  data(area: Area, id: string): string;
  record(area: Area, id: string): string;
}

/** The layout below a base path, as this process sees it. */
export function layoutOf(base: string): Layout {
  const own = posix.join(base, '.switchboard');
  const tmp = posix.join(own, 'tmp');
  const projects = posix.join(own, 'p');
  const dataFolder = (area: Area) => posix.join(base, area);
  const recordFolder = (area: Area) => posix.join(own, area);
  return {
    base,
    tmp,
    projects,
    promises: posix.join(own, 'c'),
    folders: [dataFolder('v'), dataFolder('s'), own, recordFolder('v'), recordFolder('s'), projects, tmp],
    dataFolder,
    recordFolder,
    data: (area, id) => posix.join(dataFolder(area), id),
    record: (area, id) => posix.join(recordFolder(area), `${id}.json`),
  };
}

/** Whether a text may be used as the name of a volume or snapshot folder. Nothing else ever becomes part of a path. */
export function isId(area: Area, text: string): boolean {
  return area === 'v' ? isVolumeId(text) : /^[A-Za-z0-9_:.+-]{1,250}$/.test(text) && text !== '.' && text !== '..';
}

/** The ids whose records are in these file names. */
export function idsOfRecords(area: Area, fileNames: readonly string[]): readonly string[] {
  return fileNames.flatMap((name) => {
    const id = name.endsWith('.json') ? name.slice(0, -'.json'.length) : '';
    return isId(area, id) ? [id] : [];
  });
}
