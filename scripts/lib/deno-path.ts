import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Deno's own binary. The command that its npm package brings may be a script, which keeps signals from it. */
export function denoPath(): string {
  const require = createRequire(import.meta.url);
  return join(dirname(require.resolve(`@deno/linux-${process.arch}-glibc/package.json`)), 'deno');
}
