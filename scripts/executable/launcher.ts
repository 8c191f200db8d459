import { join } from 'node:path';
import { repository } from '../lib/repository.ts';
import type { Target } from './target.ts';
import { run, toolName } from './tools.ts';

const source = join(repository, 'scripts/launcher/launcher.c');

const flags = [
  ...['-std=gnu11', '-Os', '-Wall', '-Wextra', '-Werror'],
  // No C library, and no relocations, for nobody would apply them.
  ...['-ffreestanding', '-nostdlib', '-static-pie', '-fPIE', '-fvisibility=hidden'],
  // Nothing that needs start-up code, or that turns a loop into a call of memset.
  ...[
    '-fno-stack-protector',
    '-fno-tree-loop-distribute-patterns',
    '-fno-unwind-tables',
    '-fno-asynchronous-unwind-tables',
  ],
  ...['-Wl,-z,noexecstack', '-Wl,-z,noseparate-code', '-Wl,-z,norelro', '-Wl,-z,max-page-size=65536'],
  ...['-Wl,--build-id=none', '-s'],
];

/** Compiles the launcher, the front of the executable. The same compiler makes the same bytes. Throws if it has relocations. */
export async function compileLauncher(target: Target, output: string): Promise<void> {
  await run(toolName(target, 'gcc'), [...flags, ...target.compilerFlags, '-o', output, source]);
  const { stdout } = await run(toolName(target, 'readelf'), ['-rdlW', output], { env: { LC_ALL: 'C' } });
  if (!stdout.includes('There are no relocations') || /NEEDED|INTERP/.test(stdout)) {
    throw new Error(`the compiler made a launcher that cannot start by itself:\n${stdout}`);
  }
}
