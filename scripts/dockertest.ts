/** `npm run test:docker`: what takes a real Docker engine. Where there is none, it says so and succeeds. */
import { glob } from 'node:fs/promises';
import { buildBundle } from './lib/build-bundle.ts';
import { repository } from './lib/repository.ts';
import { runPhases } from './test/phases.ts';

process.chdir(repository);
await buildBundle();
const files: string[] = [];
for await (const file of glob('test/lab/docker*.test.ts', { cwd: repository })) files.push(file);
const controller = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => controller.abort());
const outcome = await runPhases([{ files: files.sort(), concurrency: 1 }], controller.signal);
for (const line of outcome.skipped) console.error(`! ${line}`);
process.exitCode = outcome.failed === 0 ? 0 : 1;
