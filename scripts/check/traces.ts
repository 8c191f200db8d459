/** What must not be in the repository: traces of the machine it was written on. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from '../lib/repository.ts';

/** The brackets keep each expression from finding itself. */
const traces: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  { what: 'a registry as the place of a package', pattern: /"resolved": "http[s]?:\/\// },
  { what: 'a registry host', pattern: /registry[.]npmjs|proxy[.]golang|files[.]pythonhosted|deb[.]debian[.]org/ },
  {
    what: 'a path of one machine',
    pattern: /(?:^|[\s'"`(=])\/(?:wor[k]\/(?:main|shared|notes)|home\/[\w-]+|Users\/[\w-]+)\//,
  },
  { what: 'the path of this checkout', pattern: new RegExp(`${repository.replace(/[^\w/]/g, '\\$&')}/`) },
];

/** One line for each, with file and line number. */
export async function foundTraces(): Promise<string[]> {
  const found: string[] = [];
  for (const file of await committedFiles()) {
    const text = await readFile(join(repository, file), 'utf8').catch(() => '');
    for (const [index, line] of text.split('\n').entries()) {
      for (const { what, pattern } of traces) if (pattern.test(line)) found.push(`${file}:${index + 1}: ${what}`);
    }
  }
  return found;
}

/** What git has, or would have with the next `git add`. */
async function committedFiles(): Promise<string[]> {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const { stdout } = await promisify(execFile)('git', args, { cwd: repository, maxBuffer: 2 ** 26 });
  return stdout.split('\0').filter((file) => file !== '');
}
