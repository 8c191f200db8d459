import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { isNative, type Target } from './target.ts';

const execute = promisify(execFile);

/** What is said while building. One line a call. */
export type Say = (line: string) => void;

export interface RunOptions {
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The child is killed after this many milliseconds. Default: two minutes. */
  readonly timeoutMs?: number;
}

/** Runs a program of the build machine and gives what it printed. Throws an error with the program's own words. */
export async function run(program: string, args: readonly string[], options: RunOptions = {}) {
  const { env, cwd, timeoutMs = 120_000 } = options;
  const settings = { env: { ...process.env, ...env }, cwd, timeout: timeoutMs, maxBuffer: 64 << 20 };
  try {
    return await execute(program, args, settings);
  } catch (error) {
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`${[program, ...args].join(' ')} failed: ${output || String(error)}`, { cause: error });
  }
}

/** Whether a program can be found in PATH. */
export async function hasProgram(name: string): Promise<boolean> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const found = await Promise.allSettled(folders.map((folder) => access(join(folder, name), constants.X_OK)));
  return found.some((one) => one.status === 'fulfilled');
}

/** Makes sure that a program is there, from a Debian package where that may be installed. False: it is not to be had. */
export async function needProgram(name: string, debianPackage: string, say: Say): Promise<boolean> {
  if (await hasProgram(name)) return true;
  if (process.getuid?.() !== 0 || !(await hasProgram('apt-get'))) return false;
  say(`${name} is missing: installing the Debian package ${debianPackage}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '-q', '--no-install-recommends', debianPackage];
  try {
    await run('apt-get', install, { env, timeoutMs: 300_000 });
  } catch {
    // A fresh image has no package lists yet.
    try {
      await run('apt-get', ['update', '-q'], { env });
      await run('apt-get', install, { env, timeoutMs: 300_000 });
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  }
  return hasProgram(name);
}

/** The command that runs a program made for the target: itself, or in an emulator; undefined where neither is possible. */
export async function runner(target: Target, root: string, say: Say): Promise<readonly string[] | undefined> {
  if (isNative(target)) return [];
  if (!(await needProgram(target.emulator, 'qemu-user-static', say))) return undefined;
  return [target.emulator, '-L', root];
}

/** The name of a compiler or of one of its tools (`gcc`, `strip`) for the target. */
export const toolName = (target: Target, tool: string): string =>
  isNative(target) ? tool : `${target.triplet}-${tool}`;

/** Makes sure that there is a compiler for the target, and with it `strip`. */
export async function needCompiler(target: Target, say: Say): Promise<boolean> {
  const package_ = isNative(target) ? 'gcc' : target.crossCompiler;
  return (
    (await needProgram(toolName(target, 'gcc'), package_, say)) &&
    (await needProgram(toolName(target, 'strip'), 'binutils', say))
  );
}
