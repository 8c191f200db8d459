/**
 * `npm test [-- part-of-a-path…]`: the unit tests, then the integration tests one file at a time. With CI=true, what cannot be tested is a
 * failure, unless the reason of the skip ends with "(not in CI)".
 */
import { glob } from 'node:fs/promises';
import { generate } from './generate.ts';
import { repository } from './lib/repository.ts';
import { prepareHost } from './test/host-tools.ts';
import { type Phase, runPhases } from './test/phases.ts';

async function test(wanted: readonly string[]): Promise<boolean> {
  await generate();
  const unit = await testFiles('unit', wanted);
  const integration = await testFiles('integration', wanted);
  if (unit.length + integration.length === 0) throw new Error(`no test file has ${wanted.join(' or ')} in its path`);
  const missing = integration.length === 0 ? [] : await prepareHost();
  process.env.SWITCHBOARD_MISSING = missing.join(',');
  const phases: Phase[] = [
    { files: unit, concurrency: 2 },
    { files: integration, concurrency: 1 },
  ];
  const outcome = await runPhases(phases, abortedBySignals());
  return outcome.failed === 0 && !(isCi && tellMissed(missing, outcome.skipped));
}

const isCi = process.env.CI === 'true';

async function testFiles(folder: string, wanted: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob(`test/${folder}/**/*.test.ts`, { cwd: repository })) files.push(file);
  return files.filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part))).sort();
}

/** Standard error, so that the summary of the tests stays the last that is on standard output. */
function tellMissed(missing: readonly string[], skipped: readonly string[]): boolean {
  const refused = skipped.filter((line) => !line.endsWith('(not in CI)'));
  if (missing.length > 0) console.error(`✗ CI must have ${missing.join(', ')}`);
  for (const line of refused) console.error(`✗ skipped, which CI may not: ${line}`);
  return missing.length + refused.length > 0;
}

/** node:test ends the test files' processes when the signal is aborted. */
function abortedBySignals(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => controller.abort());
  return controller.signal;
}

process.chdir(repository);
process.exitCode = (await test(process.argv.slice(2))) ? 0 : 1;
