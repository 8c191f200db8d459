/** Makes the static executable: one file that needs nothing of the machine it runs on but the kernel and /proc. */
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { compileLauncher } from './executable/launcher.ts';
import { findLibraries } from './executable/libraries.ts';
import { joinParts } from './executable/parts.ts';
import { makeProgram } from './executable/program.ts';
import { type Architecture, isNative, targets } from './executable/target.ts';
import { needCompiler, run, runner, type Say } from './executable/tools.ts';
import { repository } from './lib/repository.ts';

export interface ExecutableOptions {
  readonly arch: Architecture;
  /** The bundled program, an ES module without top-level await. Default: dist/switchboard.mjs. */
  readonly bundle?: string;
  /** On the same file system as dist. Default: dist/switchboard-linux-<arch>. */
  readonly output?: string;
  /** What is said while building. Default: standard error. */
  readonly say?: Say;
}

/**
 * Makes the static executable for one processor and gives its path. Where there is no compiler and none may be installed,
 * it says so and gives undefined: dist/switchboard.mjs is then the result of the build.
 *
 * The same bundle gives the same bytes with the same compiler and binutils, the locked Node.js and the pinned Debian
 * packages. Where one of them is not to be had, that is said. Throws if a step fails or the result does not run.
 */
export async function buildExecutable(options: ExecutableOptions): Promise<string | undefined> {
  const {
    arch,
    bundle = join(repository, 'dist/switchboard.mjs'),
    output = join(repository, `dist/switchboard-linux-${arch}`),
    say = (line) => process.stderr.write(`${line}\n`),
  } = options;
  const target = targets[arch];
  if (!(await needCompiler(target, say))) {
    const missing = isNative(target) ? 'gcc and binutils' : target.crossCompiler;
    say(`NO EXECUTABLE for ${arch}: it takes a C compiler, and ${missing} cannot be installed here. Use ${bundle}`);
    return undefined;
  }
  const work = join(repository, 'dist/.work');
  await mkdir(work, { recursive: true });
  const folder = await mkdtemp(join(work, `${arch}-`));
  try {
    const { loader, libraries, root } = await findLibraries(target, join(folder, 'root'), say);
    const launcher = join(folder, 'launcher');
    await compileLauncher(target, launcher);
    const program = await makeProgram({ target, bundle, folder, root, say });
    const made = join(folder, 'executable');
    await joinParts(launcher, [{ name: 'node', content: await readFile(program) }, loader, ...libraries], made);
    await tryExecutable(made, await runner(target, root, say));
    // The executable before it stays whole until now, and while it runs.
    await mkdir(dirname(output), { recursive: true });
    await rename(made, output);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return output;
}

/** It starts, and V8 takes the code cache: Node.js warns on standard error when it does not. */
async function tryExecutable(path: string, command: readonly string[] | undefined): Promise<void> {
  if (!command) return;
  const [first, ...rest] = [...command, path, '--version'];
  const { stderr } = await run(first!, rest);
  if (stderr) throw new Error(`the executable does not start without a word: ${stderr}`);
}

if (process.argv[1] === import.meta.filename) {
  const [arch = process.arch, bundle, output] = process.argv.slice(2);
  if (arch !== 'x64' && arch !== 'arm64') throw new Error(`executables are made for x64 and arm64, not for ${arch}`);
  await buildExecutable({ arch, ...(bundle && { bundle }), ...(output && { output }) });
}
