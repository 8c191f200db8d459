/** `npm run build [-- --bundle-only]`: dist/switchboard.mjs, then the executables made from it. */
import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { generate } from './generate.ts';
import { bundle } from './lib/bundle.ts';
import { repository } from './lib/repository.ts';
import { writeChanged } from './lib/write-changed.ts';

/** Where {@link buildBundle} writes. */
export const bundlePath = join(repository, 'dist/switchboard.mjs');

/** Brings dist/switchboard.mjs up to date with the sources. Takes well under a second. */
export async function buildBundle(): Promise<void> {
  await generate();
  await mkdir(join(repository, 'dist'), { recursive: true });
  await writeChanged(bundlePath, await bundle({ format: 'esm' }));
}

interface Executables {
  /** Makes dist/switchboard-linux-<arch> and returns its path. */
  buildExecutable(arch: 'x64' | 'arm64'): Promise<string>;
}

async function buildAll(): Promise<void> {
  const started = performance.now();
  await buildBundle();
  await report(bundlePath, started);
  if (process.argv.includes('--bundle-only')) return;
  const executables = join(import.meta.dirname, 'executable.ts');
  if (!existsSync(executables)) {
    console.log('✗ scripts/executable.ts is missing: NO EXECUTABLE WAS BUILT');
    return;
  }
  const { buildExecutable }: Executables = await import(executables);
  for (const arch of ['x64', 'arm64'] as const) {
    const began = performance.now();
    await report(await buildExecutable(arch), began);
  }
}

async function report(path: string, started: number): Promise<void> {
  const { size } = await stat(path);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`✓ ${relative(repository, path)}  ${(size / 2 ** 20).toFixed(1)} MiB, ${seconds} s`);
}

if (process.argv[1] === import.meta.filename) await buildAll();
