import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../lib/repository.ts';
import type { Target } from './target.ts';
import { run } from './tools.ts';

/**
 * The path of the pinned Node.js for a target. npm installs it for the machine's own processor only; for another it is
 * fetched as a package and checked against package-lock.json. Throws if it is not the package that is locked.
 */
export async function findRuntime(target: Target): Promise<string> {
  const name = `node-linux-${target.arch}`;
  const installed = join(repository, 'node_modules', name, 'bin/node');
  if (await exists(installed)) return installed;
  const { version, integrity } = await locked(name);
  const folder = join(repository, 'node_modules/.cache/switchboard/node', `${name}-${version}`);
  const unpacked = join(folder, 'package/bin/node');
  if (await exists(unpacked)) return unpacked;
  const temporary = `${folder}.${process.pid}`;
  await mkdir(temporary, { recursive: true });
  try {
    await run('npm', ['pack', '--silent', `${name}@${version}`], { cwd: temporary });
    const archive = (await readdir(temporary)).find((file) => file.endsWith('.tgz'));
    if (!archive) throw new Error(`npm packed no ${name}`);
    const found = createHash('sha512')
      .update(await readFile(join(temporary, archive)))
      .digest('base64');
    if (`sha512-${found}` !== integrity)
      throw new Error(`${name}@${version} is not the package that package-lock.json names`);
    await run('tar', ['-xzf', archive, 'package/bin/node'], { cwd: temporary });
    await rm(join(temporary, archive));
    await rm(folder, { recursive: true, force: true });
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return unpacked;
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function locked(name: string): Promise<{ version: string; integrity: string }> {
  const lock: unknown = JSON.parse(await readFile(join(repository, 'package-lock.json'), 'utf8'));
  const { packages } = lock as { packages: Record<string, { version?: string; integrity?: string }> };
  const { version, integrity } = packages[`node_modules/${name}`] ?? {};
  if (!version || !integrity) throw new Error(`package-lock.json does not name ${name}`);
  return { version, integrity };
}
