/** The built executable, with a program of the test's own run inside it, and an empty root to run it in. */
import { execFile, type ProcessEnvOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Another build's path by SWITCHBOARD_TEST_EXECUTABLE. */
export const executable =
  process.env.SWITCHBOARD_TEST_EXECUTABLE ?? join(import.meta.dirname, `../../dist/switchboard-linux-${process.arch}`);

/** Why the tests cannot run, or false. Continuous integration builds first, so there it is a failure that speaks for itself. */
export const missing =
  existsSync(executable) || process.env.CI ? false : `NOT TESTED: ${executable} is missing; run \`npm run build\``;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; a minute at most. */
export function runToEnd(
  program: string,
  args: readonly string[],
  env: ProcessEnvOptions['env'] = process.env,
  input = '',
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      [...args],
      { env, timeout: 60_000, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        if (error && child.exitCode === null && child.signalCode === null) reject(error);
        else resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr });
      },
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

/**
 * Puts code into the executable that runs there before its own program (Node.js reads NODE_OPTIONS in it as everywhere):
 * what is tested is the file that is shipped. Gives the environment to run it with.
 */
export async function codeInside(t: TestContext, code: string): Promise<{ NODE_OPTIONS: string; folder: string }> {
  const folder = await makeFolder(t);
  await writeFile(join(folder, 'inside.cjs'), code);
  return { NODE_OPTIONS: `--require=${join(folder, 'inside.cjs')}`, folder };
}

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'executable-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Runs shell commands of this machine where `$root` is an empty root: it holds the executable as /switchboard, the writable
 * folder /w, and /proc. The mounts are in a namespace of their own and end with it, however it ends.
 */
export async function inEmptyRoot(t: TestContext, commands: string, env = {}): Promise<Ended> {
  const root = await makeFolder(t);
  const script = `set -eu
mount -t tmpfs -o size=64m,mode=0755 none "$root"
mkdir "$root/proc" "$root/w"
touch "$root/switchboard"
mount --bind "$executable" "$root/switchboard"
mount -t proc proc "$root/proc"
inside() { chroot "$root" /switchboard "$@"; }
${commands}`;
  const args = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private', 'sh', '-c', script];
  return runToEnd('unshare', args, { PATH: process.env.PATH, root, executable, ...env });
}
