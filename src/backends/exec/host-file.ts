import { readFile } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { errnoOf } from '../../core/errors.ts';
import { resolveInRoot } from './root-path.ts';

/**
 * The text of a file that belongs to the host, such as its initiator name: of this process's own root if it is there, or else of the host's
 * root directory. Rejects as reading the file here would.
 */
export async function readHostFile(path: string, root: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const file = errnoOf(error) === 'ENOENT' ? await resolveInRoot(root, path) : undefined;
    if (file === undefined) throw error;
    return readFile(join(root, file), 'utf8');
  }
}
