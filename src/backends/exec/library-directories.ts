import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path/posix';
import { resolveInRoot } from './root-path.ts';

/**
 * The directories in which the dynamic loader of a root looks for libraries: those of its configuration, then the standard ones. Paths
 * within the root, free of symbolic links, each once; only those that are there.
 *
 * `interpreter` is the loader's path: ld.so(8) of glibc reads /etc/ld.so.conf, musl's reads /etc/ld-musl-<processor>.path.
 */
export async function libraryDirectories(root: string, interpreter: string): Promise<readonly string[]> {
  const musl = /^(ld-musl-.+)\.so\.\d+$/.exec(basename(interpreter))?.[1];
  const named = musl ? await muslDirectories(root, musl) : [...(await configured(root)), ...(await standard(root))];
  // A loader that was built for a place of its own, as on NixOS, has its libraries beside it.
  const loader = await resolveInRoot(root, interpreter);
  const all = loader === undefined ? named : [...named, dirname(loader)];
  const resolved = await Promise.all(all.map((directory) => resolveInRoot(root, directory)));
  return [...new Set(resolved.filter((directory) => directory !== undefined))];
}

async function muslDirectories(root: string, name: string): Promise<readonly string[]> {
  const text = await textAt(root, `/etc/${name}.path`);
  const named = text?.split(/[\n:]/).filter((one) => one.startsWith('/')) ?? [];
  return named.length > 0 ? named : ['/lib', '/usr/local/lib', '/usr/lib'];
}

/** Those named by /etc/ld.so.conf and the files it includes, ldconfig(8). */
async function configured(root: string): Promise<readonly string[]> {
  const seen = new Set<string>();

  async function read(path: string): Promise<string[]> {
    if (seen.has(path)) return [];
    seen.add(path);
    const found: string[] = [];
    for (const line of ((await textAt(root, path)) ?? '').split('\n')) {
      const [first = '', ...rest] = line.replace(/#.*/, '').trim().split(/\s+/);
      if (first.startsWith('/')) found.push(first.replace(/=.*/, ''));
      if (first !== 'include') continue;
      for (const pattern of rest) {
        for (const one of await matching(root, join(dirname(path), pattern), pattern)) found.push(...(await read(one)));
      }
    }
    return found;
  }
  return read('/etc/ld.so.conf');
}

/** The files that an `include` means. Wildcards occur in the last segment only. */
async function matching(root: string, relative: string, pattern: string): Promise<readonly string[]> {
  const path = pattern.startsWith('/') ? pattern : relative;
  const directory = await resolveInRoot(root, dirname(path));
  if (directory === undefined) return [];
  const names = await readdir(join(root, directory)).catch(() => []);
  const wanted = basename(path)
    .split('*')
    .map((part) => part.replace(/[^\w]/g, '\\$&'))
    .join('.*');
  return names
    .filter((name) => new RegExp(`^${wanted}$`).test(name))
    .toSorted()
    .map((name) => join(directory, name));
}

/** The standard directories, with those of Debian's layout, one for each processor. */
async function standard(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const parent of ['/lib', '/usr/lib']) {
    const directory = await resolveInRoot(root, parent);
    const names = directory === undefined ? [] : await readdir(join(root, directory)).catch(() => []);
    found.push(...names.filter((name) => /^\w+-linux-\w+$/.test(name)).map((name) => join(parent, name)));
  }
  return [...found, '/lib64', '/usr/lib64', '/lib', '/usr/lib'];
}

async function textAt(root: string, path: string): Promise<string | undefined> {
  const file = await resolveInRoot(root, path);
  return file === undefined ? undefined : readFile(join(root, file), 'utf8').catch(() => undefined);
}
