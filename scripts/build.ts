/** `npm run build [-- --bundle-only]`: dist/switchboard.mjs, then the executables made from it. */
import { stat } from 'node:fs/promises';
import { relative } from 'node:path';
import { buildExecutable } from './executable.ts';
import { buildBundle, bundlePath } from './lib/build-bundle.ts';
import { repository } from './lib/repository.ts';

async function buildAll(): Promise<void> {
  const started = performance.now();
  await buildBundle();
  await report(bundlePath, started);
  if (process.argv.includes('--bundle-only')) return;
  for (const arch of ['x64', 'arm64'] as const) {
    const began = performance.now();
    const path = await buildExecutable({ arch, say: (line) => console.log(`  ${line}`) });
    if (path !== undefined) await report(path, began);
  }
}

async function report(path: string, started: number): Promise<void> {
  const { size } = await stat(path);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`✓ ${relative(repository, path)}  ${(size / 2 ** 20).toFixed(1)} MiB, ${seconds} s`);
}

if (process.argv[1] === import.meta.filename) await buildAll();
