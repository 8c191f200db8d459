import { stat } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { resolveInRoot } from './root-path.ts';

export interface FoundProgram {
  /** As the search came to it: multi-call programs go by the name they are started under. */
  readonly path: string;
  /** The file itself, within the root and free of symbolic links. */
  readonly file: string;
}

/** Looks for a program as a shell in that root would: a path is taken as it is, a name is looked for in the directories. */
export async function findProgram(
  root: string,
  program: string,
  directories: readonly string[],
): Promise<FoundProgram | undefined> {
  const paths = program.includes('/') ? [program] : directories.map((directory) => join(directory, program));
  for (const path of paths) {
    const file = await resolveInRoot(root, path);
    if (file !== undefined && (await isProgram(join(root, file)))) return { path, file };
  }
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  return (await editionOf(path)) !== undefined;
}

/** Tells one edition of a program from the next that takes its place; undefined when there is no file that somebody may run. */
export async function editionOf(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true || (found.mode & 0o111) === 0) return undefined;
  return `${found.dev} ${found.ino} ${found.mtimeMs} ${found.size}`;
}
