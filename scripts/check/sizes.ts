import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../lib/repository.ts';

/** A file over `wanted` lines is worth a look; one over `limit` is several ideas in one. */
const wanted = 300;
const limit = 350;

export interface LongFiles {
  readonly tooLong: readonly string[];
  readonly long: readonly string[];
}

/** The source files with too many lines. */
export async function longFiles(): Promise<LongFiles> {
  const tooLong: string[] = [];
  const long: string[] = [];
  for await (const file of glob('src/**/*.ts', { cwd: repository, exclude: ['src/generated'] })) {
    const lines = (await readFile(join(repository, file), 'utf8')).split('\n').length - 1;
    if (lines > wanted) (lines > limit ? tooLong : long).push(`${file}: ${lines} lines`);
  }
  return { tooLong: tooLong.sort(), long: long.sort() };
}
