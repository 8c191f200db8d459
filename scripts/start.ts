/** `npm start [-- argument…]`: the program, up to date with its sources, in the foreground. Its state is in .switchboard beside package.json. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buildBundle, bundlePath } from './lib/build-bundle.ts';
import { repository } from './lib/repository.ts';

async function start(): Promise<void> {
  await buildBundle();
  const env = { SWITCHBOARD_STATE_DIR: join(repository, '.switchboard'), ...process.env };
  const args = ['serve', ...process.argv.slice(2)];
  const executable = join(repository, `dist/switchboard-linux-${process.arch}`);
  // Becoming the program, instead of having it as a child, leaves signals and the exit code to it.
  if (await isFresh(executable)) process.execve?.(executable, [executable, ...args], env);
  process.execve?.(process.execPath, [process.execPath, bundlePath, ...args], env);
  throw new Error(`Node.js ${process.versions.node} cannot replace its process; 22.18 or newer is needed`);
}

/** The bundle's time is that of its last change, so an executable that is younger was made from it. */
async function isFresh(executable: string): Promise<boolean> {
  const [bundle, built] = await Promise.all([stat(bundlePath), stat(executable).catch(() => undefined)]);
  return built !== undefined && built.mtimeMs >= bundle.mtimeMs;
}

await start();
