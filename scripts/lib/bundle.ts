/** The program as one file. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { commitOf } from './commit.ts';
import { repository } from './repository.ts';

/** The bundle's text, an ES module. Equal sources at an equal commit give equal bytes. */
export async function bundle(entry: string = join(repository, 'src/main.ts')): Promise<string> {
  const { outputFiles } = await build(await options(entry));
  const text = outputFiles?.[0]?.text;
  if (text === undefined) throw new Error('esbuild made no output');
  return text;
}

async function options(entry: string): Promise<BuildOptions> {
  const { version }: { version: string } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
  return {
    entryPoints: [entry],
    absWorkingDir: repository,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    // Names stay, so that a stack trace from the field can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    charset: 'utf8',
    define: {
      __SWITCHBOARD_VERSION__: JSON.stringify(version),
      __SWITCHBOARD_COMMIT__: JSON.stringify(await commitOf(repository)),
    },
    plugins: [stubs],
    banner: { js: requireBanner },
  };
}

/** CommonJS packages inside an ES module call `require` for the modules of Node.js. */
const requireBanner = `import { createRequire as __createRequire } from 'node:module';
const require = __createRequire(import.meta.url);`;

/**
 * What the program never calls: grpc-js wants its proto-loader for channelz and ORCA alone, and 64-bit integers are plain numbers here, so
 * protobufjs has no use for `long`.
 */
const stubs: Plugin = {
  name: 'stubs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(@grpc\/proto-loader|long)$/ }, ({ path }) => ({ path, namespace: 'stub' }));
    onLoad({ filter: /.*/, namespace: 'stub' }, () => ({ contents: 'module.exports = {};', loader: 'js' }));
  },
};
