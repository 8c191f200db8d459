/** Which room of src/ may import which: a request walks one way, and each room knows only the rooms behind it. */
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../lib/repository.ts';

const behind: Readonly<Record<string, readonly string[]>> = {
  main: ['cli', 'core'],
  cli: ['frontends', 'proxy', 'pipeline', 'drivers', 'node', 'backends', 'config', 'core', 'generated'],
  frontends: ['proxy', 'pipeline', 'drivers', 'node', 'backends', 'core', 'generated'],
  proxy: ['pipeline', 'drivers', 'node', 'backends', 'config', 'core'],
  pipeline: ['drivers', 'node', 'backends', 'core', 'generated'],
  drivers: ['node', 'backends', 'config', 'core'],
  node: ['backends', 'core'],
  backends: ['core'],
  config: ['core'],
  core: [],
};

/** The specifier of static and dynamic imports, exports and import types. */
const specifiers = /(?:\bfrom\s+|\bimport\s*\(?\s*)'(\.[^']*)'/g;

/** One line for each import that goes the wrong way. */
export async function wrongImports(): Promise<string[]> {
  const wrong: string[] = [];
  for await (const file of glob('src/**/*.ts', { cwd: repository, exclude: ['src/generated'] })) {
    const room = roomOf(file);
    const text = await readFile(join(repository, file), 'utf8');
    for (const [, specifier] of text.matchAll(specifiers)) {
      const target = roomOf(join(file, '..', specifier!));
      if (target !== room && !behind[room]?.includes(target)) wrong.push(`${file}: ${room} may not import ${target}`);
    }
  }
  return wrong.sort();
}

/** `src/cli/run.ts` → cli, `src/main.ts` → main. */
function roomOf(file: string): string {
  return file.split('/')[1]!.replace(/\.ts$/, '');
}
