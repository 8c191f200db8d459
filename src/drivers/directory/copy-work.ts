import { reasonOf } from '../../core/call.ts';
import type { Call, Directory } from './directory.ts';
import type { Area } from './layout.ts';
import { adoptPartial, releasePartial, writeNote } from './partial-copy.ts';
import type { Work } from './work.ts';
import { withWork } from './work.ts';

/** A volume or snapshot that is made by filling its folder. */
export interface CopyWork {
  readonly area: Area;
  readonly id: string;
  /** What it is filled from (partial-copy.ts); undefined: it cannot be gone on with when it is broken off. */
  readonly from: string | undefined;
  readonly project?: number | undefined;
}

/**
 * Gives `body` a folder to work in, with the folder for the data made. `broken`: with what is left of an earlier copy of the same. When the process
 * stops, it is left for the next.
 */
export async function withCopyWork<T>(
  directory: Directory,
  call: Call,
  { area, id, from, project }: CopyWork,
  body: (work: Work, broken: boolean) => Promise<T>,
): Promise<T> {
  const note = from === undefined || project !== undefined ? undefined : { area, id, from };
  const folder = note && (await adoptPartial(directory, call, note));
  const fill = async (work: Work) => {
    if (folder !== undefined) return await body(work, true);
    await directory.files.makeFolder(work.data(area, id));
    if (note) await writeNote(directory, work.path, note);
    return await body(work, false);
  };
  return await withWork(directory, fill, {
    project,
    folder,
    leave: () => note !== undefined && call.signal.aborted && reasonOf(call.signal).code === 'UNAVAILABLE',
    onLeft: (name) => releasePartial(directory, name),
  });
}
