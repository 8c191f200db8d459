import { spawnSync } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from './repository.ts';

const bundlePath = join(repository, 'dist/switchboard.mjs');

/**
 * Replaces this process by the program, up to date with its sources, with its state in .switchboard beside package.json. Becoming it, instead
 * of having it as a child, leaves signals and the exit code to it.
 */
export async function becomeProgram(args: readonly string[]): Promise<never> {
  // In a process of its own, for the compiler's child must not become a child of the program.
  const build = [join(repository, 'scripts/build.ts'), '--bundle-only'];
  const { status } = spawnSync(process.execPath, build, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) process.exit(1);
  const own = {
    SWITCHBOARD_STATE_DIR: join(repository, '.switchboard'),
    SWITCHBOARD_COMMAND: 'npm run -s switchboard --',
  };
  const env = { ...own, ...process.env };
  const executable = join(repository, `dist/switchboard-linux-${process.arch}`);
  if (await isFresh(executable)) process.execve?.(executable, [executable, ...args], env);
  process.execve?.(process.execPath, [process.execPath, bundlePath, ...args], env);
  throw new Error(`Node.js ${process.versions.node} cannot replace its process; 22.18 or newer is needed`);
}

/** The bundle's time is that of its last change, so an executable that is younger was made from it. */
async function isFresh(executable: string): Promise<boolean> {
  const [bundle, built] = await Promise.all([stat(bundlePath), stat(executable).catch(() => undefined)]);
  return built !== undefined && built.mtimeMs >= bundle.mtimeMs;
}
