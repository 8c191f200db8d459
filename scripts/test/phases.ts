/** Several runs of node:test, reported as one. */
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

export interface Phase {
  readonly files: readonly string[];
  /** How many files run at a time. */
  readonly concurrency: number;
  /** Milliseconds after which a file counts as hung. Default: ten minutes. */
  readonly limitMs?: number | undefined;
}

export interface Outcome {
  readonly failed: number;
  /** `name: reason` of each test that was skipped. */
  readonly skipped: readonly string[];
}

/** What node:test says at the end of a run, such as `pass 12`. */
const total = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/;

const usualLimitMs = 600_000;

/** Runs the phases one after the other. Results go to standard output, closed by one summary in the form of node:test. */
export async function runPhases(phases: readonly Phase[], signal: AbortSignal): Promise<Outcome> {
  const totals = new Map<string, number>();
  const skipped: string[] = [];
  const reporter = new spec();
  reporter.pipe(process.stdout);
  for (const { files, concurrency, limitMs = usualLimitMs } of phases) {
    if (files.length === 0) continue;
    const options = { files: [...files], concurrency, signal, timeout: limitMs };
    for await (const event of run(options)) {
      const sum = event.type === 'test:diagnostic' && event.data.nesting === 0 && total.exec(event.data.message);
      if (sum) totals.set(sum[1]!, (totals.get(sum[1]!) ?? 0) + Number(sum[2]));
      else if (event.type !== 'test:summary') reporter.write(event);
      if (event.type === 'test:pass' && event.data.skip) skipped.push(`${event.data.name}: ${event.data.skip}`);
    }
  }
  // This event makes the reporter list the failures; the totals come after them, where they are looked for.
  reporter.write({ type: 'test:summary', data: {} });
  for (const [name, value] of totals) reporter.write(diagnostic(`${name} ${value}`));
  const ended = new Promise((resolve) => reporter.once('end', resolve));
  reporter.end();
  await ended;
  return { failed: (totals.get('fail') ?? 0) + (totals.get('cancelled') ?? 0), skipped };
}

function diagnostic(message: string) {
  return { type: 'test:diagnostic', data: { message, nesting: 0, level: 'info' } };
}
