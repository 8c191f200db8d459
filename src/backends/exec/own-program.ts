import { dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';

/**
 * How to start this very program again with other arguments: as an executable, as a bundle, or from its sources; under Node.js and Deno. The
 * file is named by the kernel's own link to it, so that it is the same version even when an upgrade has put another in its place meanwhile.
 */
export function ownProgram(args: readonly string[]): { readonly file: string; readonly args: readonly string[] } {
  const file = '/proc/self/exe';
  if (isExecutable()) return { file, args };
  const here = fileURLToPath(import.meta.url);
  const main = here.endsWith('/own-program.ts') ? join(dirname(here), '../../main.ts') : here;
  const before = 'deno' in process.versions ? ['run', '--quiet', '-A', '--no-prompt'] : [];
  return { file, args: [...before, main, ...args] };
}

/** Whether the running program is the executable, and not the bundle or its sources. */
export function isExecutable(): boolean {
  return fileURLToPath(import.meta.url) === process.execPath;
}
