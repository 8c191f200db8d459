/**
 * `npm run test:lab [-- part-of-a-path…]`: what takes a kernel of its own: real servers of NFS, SMB, iSCSI and NVMe-oF, and the program as their
 * client, in guests. Without root it says so and succeeds, except in CI, where what cannot be tested is a failure.
 */
import { glob } from 'node:fs/promises';
import { cpus } from 'node:os';
import { labFiles, noGuests } from '../test/lab/lab-files.ts';
import { buildBundle } from './lib/build-bundle.ts';
import { repository } from './lib/repository.ts';
import { runPhases } from './test/phases.ts';

process.chdir(repository);
const isCi = process.env.CI === 'true';
const wanted = process.argv.slice(2);
/** A guest is pinned to one processor. */
const concurrency = Math.min(2, cpus().length);

async function test(): Promise<boolean> {
  if (noGuests) {
    console.error(`! ${noGuests}`);
    return !isCi || noGuests.endsWith('(not in CI)');
  }
  await buildBundle();
  await labFiles((line) => console.error(line));
  const files: string[] = [];
  for await (const file of glob('test/lab/*.test.ts', { cwd: repository })) {
    const isOurs = !file.includes('/docker');
    if (isOurs && (wanted.length === 0 || wanted.some((part) => file.includes(part)))) files.push(file);
  }
  if (files.length === 0) throw new Error(`no test file has ${wanted.join(' or ')} in its path`);
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => controller.abort());
  // Those on ZFS take longest: begun last, one of them would run alone in the end.
  const outcome = await runPhases([{ files: files.sort().reverse(), concurrency }], controller.signal);
  for (const line of outcome.skipped) console.error(`! ${line}`);
  return outcome.failed === 0 && !(isCi && outcome.skipped.some((line) => !line.endsWith('(not in CI)')));
}

process.exitCode = (await test()) ? 0 : 1;
