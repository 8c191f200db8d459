import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../lib/repository.ts';
import { unpackDebian, type Wanted } from './debian.ts';
import type { Part } from './parts.ts';
import { type Architecture, isNative, type Target } from './target.ts';
import type { Say } from './tools.ts';

/** What the Node.js runtime needs to be loaded. */
export interface Libraries {
  readonly loader: Part;
  readonly libraries: readonly Part[];
  /** The folder that has them at their usual places, for an emulator. */
  readonly root: string;
}

const compiler = '12.2.0-14+deb12u1';
const pinned: Record<Architecture, Wanted> = {
  x64: {
    architecture: 'amd64',
    suite: 'bookworm',
    packages: [
      {
        name: 'libc6',
        version: '2.36-9+deb12u14',
        sha256: 'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf',
      },
      {
        name: 'libstdc++6',
        version: compiler,
        sha256: '5cd3171216d4ab0fc911cfe9c35509bf2dd8f47761c43b7f6a4296701551a24d',
      },
      {
        name: 'libgcc-s1',
        version: compiler,
        sha256: '3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7',
      },
    ],
  },
  arm64: {
    architecture: 'arm64',
    suite: 'bookworm',
    packages: [
      {
        name: 'libc6',
        version: '2.36-9+deb12u14',
        sha256: '01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4',
      },
      {
        name: 'libstdc++6',
        version: compiler,
        sha256: '26e138c677a985775331373828a6c286c551ff397cb735d00e2383cb273d1cb2',
      },
      {
        name: 'libgcc-s1',
        version: compiler,
        sha256: '576926b283613db80168ddf76380a3bd877602778cf0d226caa7bfbfa71eacf3',
      },
    ],
  },
};

/**
 * The runtime's own libraries; and libresolv, which a machine's name service modules want: it must be of the same build as
 * libc. The modules for files and DNS are inside libc.
 */
const names = [
  'libc.so.6',
  'libm.so.6',
  'libdl.so.2',
  'libpthread.so.0',
  'libstdc++.so.6',
  'libgcc_s.so.1',
  'libresolv.so.2',
];

/**
 * The dynamic loader and the libraries for a target, from pinned Debian packages that are unpacked into `folder`; as a last
 * resort this machine's own. Throws if there are none for the target.
 */
export async function findLibraries(target: Target, folder: string, say: Say): Promise<Libraries> {
  const cache = join(repository, 'node_modules/.cache/switchboard/debian');
  let root = folder;
  try {
    await unpackDebian(pinned[target.arch], cache, folder, say);
  } catch (error) {
    if (!isNative(target)) throw error;
    say(`NOT REPRODUCIBLE: built with this machine's own C library: ${error instanceof Error ? error.message : error}`);
    root = '/';
  }
  const loader = await findLibrary(root, target, target.loader);
  const libraries = await Promise.all(names.map((name) => findLibrary(root, target, name)));
  return { loader: withoutPreloadFile(loader), libraries, root };
}

async function findLibrary(root: string, target: Target, name: string): Promise<Part> {
  const folders = ['lib', 'usr/lib', 'lib64', 'usr/lib64'].flatMap((folder) => [join(folder, target.triplet), folder]);
  for (const folder of folders) {
    const present = await readdir(join(root, folder)).catch((): string[] => []);
    if (present.includes(name)) return { name, content: await readFile(join(root, folder, name)) };
  }
  throw new Error(`there is no ${name} in ${root}`);
}

/** A static executable does not load what a machine's administrator wants loaded into the machine's dynamic programs. */
function withoutPreloadFile({ name, content }: Part): Part {
  const changed = Buffer.from(content);
  const path = Buffer.from('/etc/ld.so.preload\0');
  const place = changed.indexOf(path);
  if (place < 0) throw new Error(`${name} no longer reads /etc/ld.so.preload under that name`);
  // An empty path names no file.
  changed.fill(0, place, place + path.length);
  return { name, content: changed };
}
