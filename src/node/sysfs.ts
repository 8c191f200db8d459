/**
 * What files of sysfs say. What they tell of comes and goes; but a process that has run out of files or memory has seen nothing, and must not
 * take that for nothing being there.
 */
import { readdir, readFile } from 'node:fs/promises';
import { errnoOf } from '../core/errors.ts';

const gone: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO']);
const scarce: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAGAIN']);

/** Names in a folder; none, if it is not there. Throws what else goes wrong. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (gone.has(errnoOf(error))) return [];
    throw error;
  }
}

/** The text of a file, without spaces around it. Undefined: it is not there, or the kernel has no answer. Throws when this process cannot read. */
export async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (scarce.has(errnoOf(error))) throw error;
    return undefined;
  }
}
