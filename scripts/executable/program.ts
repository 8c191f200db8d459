import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { findRuntime } from './runtime.ts';
import { isNative, type Target, targets } from './target.ts';
import { run, runner, type Say, toolName } from './tools.ts';

export interface ProgramInput {
  readonly target: Target;
  /** The bundled program, an ES module. */
  readonly bundle: string;
  /** An existing folder for what is made on the way. */
  readonly folder: string;
  /** A folder that has the target's libraries at their usual places. */
  readonly root: string;
  readonly say: Say;
}

/**
 * Makes the dynamically linked program: the pinned Node.js, stripped, with the bundle inside as a single executable
 * application (https://nodejs.org/docs/latest-v22.x/api/single-executable-applications.html). Gives its path.
 *
 * pkg's function for this is not used, only the injector that it brings: it writes the bundle's absolute path into the
 * file, its generator takes no V8 flags, so that the code cache differs from build to build, and it has to run the target's
 * Node.js to learn its version. Each of them would end "same input, same bytes", or the build for another processor.
 */
export async function makeProgram(input: ProgramInput): Promise<string> {
  const { target, folder } = input;
  const program = join(folder, 'program');
  await bundleForExecutable(input);
  await copyFile(await findRuntime(target), program);
  // Before the injection: strip does not know what to keep of it.
  await run(toolName(target, 'strip'), [program]);
  await generateBlob(input, program);
  const injector = join(
    dirname(createRequire(require.resolve('@yao-pkg/pkg/package.json')).resolve('postject')),
    'cli.js',
  );
  // Not one string, or this very text would be a second place to look at if it ever came into a bundle.
  const fuse = ['NODE_SEA_FUSE', 'fce680ab2cc467b6e072b8b5df1996b2'].join('_');
  await run(process.execPath, [injector, program, 'NODE_SEA_BLOB', join(folder, blob), '--sentinel-fuse', fuse]);
  return program;
}

const require = createRequire(import.meta.url);
const main = 'switchboard.cjs';
const blob = 'switchboard.blob';

/** A single executable application of Node.js 22 is CommonJS, and has no `import.meta`. */
async function bundleForExecutable({ bundle, folder }: ProgramInput): Promise<void> {
  await build({
    entryPoints: [bundle],
    outfile: join(folder, main),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node22',
    define: { 'import.meta.url': 'executableUrl' },
    banner: { js: 'const executableUrl = require("node:url").pathToFileURL(process.execPath).href;' },
    // V8 keeps the source in memory.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
    // What is suspicious in our own files was told when the bundle was made; here a library's looks like ours.
    logOverride: { 'empty-import-meta': 'error', 'suspicious-boolean-not': 'silent' },
  });
}

/**
 * The code cache saves compiling at each start. V8 takes it only from the very same build, so an emulator runs the target's
 * own Node.js. `--predictable` fixes the seed of the hashes in it, without which no two builds are alike; V8 accepts
 * the result when run without the flag (with `--hash-seed` it does not).
 */
async function generateBlob({ target, folder, root, say }: ProgramInput, program: string): Promise<void> {
  const command = await runner(target, root, say);
  if (!command)
    say(`NO CODE CACHE in the ${target.arch} executable: ${target.emulator} is not to be had; it starts slower`);
  const settings = { main, output: blob, disableExperimentalSEAWarning: true, useCodeCache: command !== undefined };
  await writeFile(join(folder, 'sea.json'), JSON.stringify(settings));
  const generator = command ? [...command, program] : [await hostRuntime()];
  const [first, ...rest] = [...generator, '--predictable', '--experimental-sea-config', 'sea.json'];
  // With the folder as working folder all paths are relative: they become part of the blob.
  await run(first!, rest, { cwd: folder });
  if ((await readFile(join(folder, blob))).length === 0) throw new Error('Node.js made an empty application');
}

/** The same Node.js for this machine's processor: the layout of a blob belongs to a version. */
function hostRuntime(): Promise<string> {
  const host = Object.values(targets).find(isNative);
  if (!host) throw new Error(`executables cannot be made on ${process.platform} ${process.arch}`);
  return findRuntime(host);
}
