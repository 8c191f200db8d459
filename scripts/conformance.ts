/**
 * `npm run conformance [-- --target NAME --focus REGEXP --keep --verbose]`: csi-sanity against every form in which the program is delivered.
 * Exit code 0 when no spec failed and the program left nothing behind. What cannot run here is skipped and said, except in CI, where it fails.
 */
import { parseArgs } from 'node:util';
import { table } from '../src/cli/output/table.ts';
import type { Spec, SpecState } from '../test/conformance/csi-sanity.ts';
import { findSanity } from '../test/conformance/find-sanity.ts';
import { buildPrograms } from '../test/conformance/programs.ts';
import { runTarget, type TargetResult } from '../test/conformance/run-target.ts';
import { type Target, targets } from '../test/conformance/targets.ts';

const { values: options } = parseArgs({
  options: {
    target: { type: 'string', multiple: true },
    focus: { type: 'string' },
    keep: { type: 'boolean', default: false },
    verbose: { type: 'boolean', short: 'v', default: false },
  },
});

interface Outcome {
  readonly target: Target;
  readonly result?: TargetResult;
  /** Why it could not run. */
  readonly missing?: string;
  readonly error?: string;
}

const say = (line: string) => void process.stderr.write(`${line}\n`);
let abort = async () => {};

async function conformance(): Promise<number> {
  const wanted = chosenTargets();
  const sanity = await findSanity(say);
  const programs = await buildPrograms(say);
  const outcomes: Outcome[] = [];
  for (const target of wanted) {
    const program = programs[target.program];
    const missing = missingFor(sanity, program === undefined ? target.program : undefined);
    if (missing !== undefined || sanity === undefined || program === undefined) {
      outcomes.push({ target, missing: missing ?? 'unknown' });
      continue;
    }
    say(`${target.name}: ${target.summary} …`);
    const { keep, focus } = options;
    const run = { target, program, sanity, keep, focus, onStart: (how: () => Promise<void>) => (abort = how) };
    outcomes.push(await outcomeOf(target, runTarget(run)));
  }
  process.stdout.write(`\n${report(outcomes)}\n`);
  return summary(outcomes);
}

function chosenTargets(): readonly Target[] {
  const names = options.target ?? targets.map(({ name }) => name);
  return names.map((name) => {
    const found = targets.find((target) => target.name === name);
    if (!found)
      throw new Error(`there is no target "${name}"; there are: ${targets.map((one) => one.name).join(', ')}`);
    return found;
  });
}

/** Bind mounts take root; without it, half of the specs would fail for a reason that is not the program's. */
function missingFor(sanity: string | undefined, program: string | undefined): string | undefined {
  if (process.getuid?.() !== 0) return 'mounting takes root';
  if (sanity === undefined) return 'there is no csi-sanity';
  return program === undefined ? undefined : `there is no ${program}`;
}

async function outcomeOf(target: Target, running: Promise<TargetResult>): Promise<Outcome> {
  try {
    return { target, result: await running };
  } catch (error) {
    return { target, error: error instanceof Error ? error.message : String(error) };
  }
}

function report(outcomes: readonly Outcome[]): string {
  const head = ['TARGET', 'PASSED', 'FAILED', 'PENDING', 'SKIPPED', 'SECONDS', ''];
  const rows = outcomes.map(({ target, result, missing, error }) => {
    const note = missing ?? (error && 'did not run') ?? (result?.complaints.length ? 'left something behind' : '');
    if (!result) return [target.name, '–', '–', '–', '–', '–', note];
    const states = (['passed', 'failed', 'pending', 'skipped'] as const).map((state) => inState(result, state).length);
    return [target.name, ...states, (result.milliseconds / 1000).toFixed(1), note];
  });
  return [table(head, rows, process.stdout.isTTY), ...outcomes.map(details)].filter((part) => part !== '').join('\n');
}

const inState = (result: TargetResult | undefined, state: SpecState): readonly Spec[] =>
  result?.specs.filter((spec) => spec.state === state) ?? [];

function details({ target, result, error }: Outcome): string {
  const failed = inState(result, 'failed').map(({ name, message }) => `✗ ${name}\n${indented(message)}`);
  const complaints = result?.complaints.map((text) => `✗ ${text}`) ?? [];
  const trouble = error === undefined ? [] : [`✗ ${error}`];
  const log = result && failed.length + complaints.length > 0 ? [`the end of its log:\n${indented(result.log)}`] : [];
  const kept = result && options.keep ? [`kept: ${result.folder}`] : [];
  const lines = [...failed, ...complaints, ...trouble, ...notRunSpecs(result), ...log, ...kept];
  return lines.length === 0 ? '' : `${target.name}:\n${lines.join('\n')}\n`;
}

/** By reason, or each by name. */
function notRunSpecs(result: TargetResult | undefined): string[] {
  const specs = [...inState(result, 'skipped'), ...inState(result, 'pending')].map(({ name, state, message }) => ({
    name,
    reason: message.split('\n')[0] || `${state} in csi-sanity`,
  }));
  if (options.verbose) return specs.map(({ name, reason }) => `○ ${name} (${reason})`);
  const byReason = Map.groupBy(specs, ({ reason }) => reason);
  return [...byReason].map(([reason, { length }]) => `○ ${length} skipped: ${reason}`);
}

const indented = (text: string) => text.trimEnd().replaceAll(/^/gm, '    ');

/** The last line, for other programs. A target that did not run, or that left something behind, counts as one. */
function summary(outcomes: readonly Outcome[]): number {
  const count = (state: SpecState) => outcomes.reduce((sum, { result }) => sum + inState(result, state).length, 0);
  const notRun = outcomes.filter(({ missing }) => missing !== undefined).length;
  const inContinuousIntegration = Boolean(process.env.CI) && process.env.CI !== 'false';
  const broken = outcomes.filter(({ error, result }) => error !== undefined || result?.complaints.length).length;
  const failed = count('failed') + broken + (inContinuousIntegration ? notRun : 0);
  if (notRun > 0) console.log(`✗ ${notRun} OF ${outcomes.length} TARGETS DID NOT RUN`);
  const skipped = count('skipped') + count('pending') + (inContinuousIntegration ? 0 : notRun);
  console.log(`${count('passed')} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void abort().finally(() => process.exit(130)));
}
process.exitCode = await conformance();
