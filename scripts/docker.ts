/**
 * `npm run package:docker [-- --arch arm64]`: a folder from which `docker plugin create NAME FOLDER` makes Docker's managed plugin. The last line
 * on standard output is its path.
 */
import { link, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pluginConfig } from './docker/plugin-config.ts';
import type { Architecture } from './executable/target.ts';
import { buildExecutable } from './executable.ts';
import { buildBundle, bundlePath } from './lib/build-bundle.ts';
import { repository } from './lib/repository.ts';

async function packagePlugin(arch: Architecture): Promise<string> {
  await buildBundle();
  const executable = await freshExecutable(arch);
  const folder = join(repository, arch === process.arch ? 'dist/docker-plugin' : `dist/docker-plugin-${arch}`);
  await rm(folder, { recursive: true, force: true });
  // Docker makes the places that it mounts upon.
  await mkdir(join(folder, 'rootfs'), { recursive: true });
  await link(executable, join(folder, 'rootfs/switchboard'));
  await writeFile(join(folder, 'config.json'), `${JSON.stringify(pluginConfig, null, 2)}\n`);
  return folder;
}

/** The bundle's time is that of its last change, so an executable that is younger was made from it. */
async function freshExecutable(arch: Architecture): Promise<string> {
  const path = join(repository, `dist/switchboard-linux-${arch}`);
  const [bundle, built] = await Promise.all([stat(bundlePath), stat(path).catch(() => undefined)]);
  if (built && built.mtimeMs >= bundle.mtimeMs) return path;
  const made = await buildExecutable({ arch });
  if (made === undefined) throw new Error('a plugin is made from the executable, which cannot be built here');
  return made;
}

const { values } = parseArgs({ options: { arch: { type: 'string', default: process.arch } } });
const { arch } = values;
if (arch !== 'x64' && arch !== 'arm64') throw new Error(`there are executables for x64 and arm64, not for ${arch}`);
console.log(await packagePlugin(arch));
