/** The program as one file. */
import { readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { commitOf } from './commit.ts';
import { repository } from './repository.ts';

/** The bundle's text, an ES module. Equal sources at an equal commit give equal bytes. */
export async function bundle(entry: string = join(repository, 'src/main.ts')): Promise<string> {
  const { outputFiles } = await build(await options(entry));
  const text = outputFiles?.[0]?.text;
  if (text === undefined) throw new Error('esbuild made no output');
  // In tagged templates esbuild leaves characters as they are, and a single one doubles what the program keeps in memory.
  const foreign = /.{0,40}[^\0-\x7f].{0,10}/.exec(text)?.[0];
  if (foreign !== undefined) throw new Error(`the bundle must be ASCII; write an entity or an escape: ${foreign}`);
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
    // Names stay: a stack trace from the field can be read, and it starts no slower.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    // One byte a character: V8 reads it faster and keeps it in half the memory.
    charset: 'ascii',
    define: {
      // ssh2 asks for it where it would look for files, of which it needs none.
      __dirname: '"/"',
      __SWITCHBOARD_VERSION__: JSON.stringify(version),
      __SWITCHBOARD_COMMIT__: JSON.stringify(await commitOf(repository)),
    },
    plugins: [stubs, lazyBuiltins],
    banner: { js: requireBanner },
  };
}

/** CommonJS packages inside an ES module call `require` for the modules of Node.js. */
const requireBanner = `import { createRequire as __createRequire } from 'node:module';
const require = __createRequire(import.meta.url);`;

/**
 * What the program never calls: grpc-js wants its proto-loader for channelz and ORCA alone, 64-bit integers are plain numbers here, so
 * protobufjs has no use for `long`, and handlebars none for source maps. ssh2 does without cpu-features, which is a native module. What
 * prom-client has to push metrics and to gather them from worker processes would only load more of Node.js.
 */
const stubs: Plugin = {
  name: 'stubs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(@grpc\/proto-loader|long|source-map|cpu-features)$/ }, ({ path }) => ({
      path,
      namespace: 'stub',
    }));
    onResolve({ filter: /^\.\/lib\/(cluster|pushgateway|summary)$/ }, ({ path, importer }) =>
      importer.endsWith('/prom-client/index.js') ? { path, namespace: 'stub' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'stub' }, () => ({ contents: 'module.exports = {};', loader: 'js' }));
  },
};

/** An `import` of a module of Node.js would be moved to the top of the file; this way it is loaded when the importing module first runs. */
const lazyBuiltins: Plugin = {
  name: 'lazy-builtins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[a-z]/ }, ({ path }) => {
      return isBuiltin(path) ? { path: path.replace(/^(node:)?/, 'node:'), namespace: 'builtin' } : undefined;
    });
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      return { contents: `module.exports = process.getBuiltinModule('${path}');`, loader: 'js' };
    });
  },
};
