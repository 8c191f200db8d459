/** Runs files of test/lab in guests. */
import { glob } from 'node:fs/promises';
import { cpus } from 'node:os';
import { labFiles, noGuests } from '../../test/lab/lab-files.ts';
import { buildBundle } from '../lib/build-bundle.ts';
import { repository } from '../lib/repository.ts';
import { runPhases } from './phases.ts';

/** Those that take longest go first, so that none is left alone at the end. */
const longest = ['zfs-kill', 'zfs-sanity', 'fault-kill', 'fault-network'];

function rank(file: string): number {
  const found = longest.findIndex((name) => file.includes(`/${name}`));
  return found < 0 ? longest.length : found;
}

/** A guest is pinned to one processor. */
const concurrency = Math.min(2, cpus().length);

/**
 * Runs the chosen files, or those of them whose path has one of the parts in it. True when all tests passed; in continuous integration, only if none
 * was left out. Without root it says so and runs none.
 */
export async function runLab(isChosen: (name: string) => boolean, parts: readonly string[]): Promise<boolean> {
  process.chdir(repository);
  const isCi = process.env.CI === 'true';
  if (noGuests) {
    console.error(`! ${noGuests}`);
    return !isCi || noGuests.endsWith('(not in CI)');
  }
  await buildBundle();
  await labFiles((line) => console.error(line));
  const files: string[] = [];
  for await (const file of glob('test/lab/*.test.ts', { cwd: repository })) {
    const name = file.slice('test/lab/'.length);
    if (isChosen(name) && (parts.length === 0 || parts.some((part) => name.includes(part)))) files.push(file);
  }
  if (files.length === 0) throw new Error(`no test file has ${parts.join(' or ')} in its name`);
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => controller.abort());
  const outcome = await runPhases(
    [{ files: files.sort((one, other) => rank(one) - rank(other)), concurrency, limitMs: 1_800_000 }],
    controller.signal,
  );
  for (const line of outcome.skipped) console.error(`! ${line}`);
  return outcome.failed === 0 && !(isCi && outcome.skipped.some((line) => !line.endsWith('(not in CI)')));
}
