/** Calls per second, latency and CPU time of each kind of call, the subjects in turn. */
import { type Case, cases, mixedCalls } from './cases.ts';
import { load } from './load.ts';
import { cpuMs } from './process-tree.ts';
import type { Session } from './session.ts';
import { median, percentile, sum } from './statistics.ts';

export interface CallFigures {
  /** Operations per second, the median of the rounds, and the worst and best round. */
  readonly perSecond: number;
  readonly slowest: number;
  readonly fastest: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the server per operation, over all rounds; undefined when its process is not known. */
  readonly cpuMs: number | undefined;
  /** The same for each round. */
  readonly cpuMsByRound: readonly number[];
  readonly operations: number;
}

export interface CaseResult {
  readonly case: Case;
  readonly concurrency: number;
  readonly figures: ReadonlyMap<Session, CallFigures>;
}

export interface CallOptions {
  readonly rounds: number;
  /** Milliseconds that a subject is measured for in each round. */
  readonly sliceMs: number;
  readonly onlyCases: readonly string[];
  readonly onProgress: (text: string) => void;
}

const concurrencies = [1, 32] as const;

/** Calls until the compiler of a JavaScript plugin has settled. */
const warmUpCalls = 2000;

/** Measures every case at every concurrency: A B A B …, so that whatever else the machine does hits all alike. */
export async function measureCalls(sessions: readonly Session[], options: CallOptions): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  options.onProgress('warming up');
  for (const session of sessions) {
    await session.stage(Math.max(...concurrencies));
    await mixedCalls(session, warmUpCalls);
  }
  for (const one of cases) {
    if (options.onlyCases.length > 0 && !options.onlyCases.includes(one.name)) continue;
    for (const concurrency of concurrencies) {
      options.onProgress(`${one.name}, ${concurrency} at a time`);
      results.push({ case: one, concurrency, figures: await measureCase(sessions, one, concurrency, options) });
    }
  }
  return results;
}

interface Slice {
  readonly operations: number;
  readonly wallMs: number;
  readonly cpuMs: number | undefined;
  readonly latenciesMs: readonly number[];
}

async function measureCase(
  sessions: readonly Session[],
  one: Case,
  concurrency: number,
  { rounds, sliceMs }: CallOptions,
): Promise<Map<Session, CallFigures>> {
  const slices = new Map(sessions.map((session) => [session, [] as Slice[]]));
  for (let round = 0; round <= rounds; round++) {
    // Whoever comes second finds the client warmer and the caches colder, so they take turns at that too.
    const order = round % 2 === 0 ? sessions : sessions.toReversed();
    for (const session of order) {
      const slice = await measureSlice(session, one, concurrency, sliceMs);
      if (round > 0) slices.get(session)?.push(slice);
    }
  }
  return new Map([...slices].map(([session, all]) => [session, figuresOf(all)]));
}

async function measureSlice(session: Session, one: Case, concurrency: number, sliceMs: number): Promise<Slice> {
  const { pid } = session.plugin;
  const before = pid === undefined ? undefined : await cpuMs(pid);
  const result = await load((worker) => one.run(session, worker), concurrency, sliceMs);
  const after = pid === undefined ? undefined : await cpuMs(pid);
  return { ...result, cpuMs: before === undefined || after === undefined ? undefined : after - before };
}

function figuresOf(slices: readonly Slice[]): CallFigures {
  const rates = slices.map(({ operations, wallMs }) => (operations / wallMs) * 1000);
  const latencies = slices.flatMap(({ latenciesMs }) => latenciesMs);
  const operations = sum(slices.map((slice) => slice.operations));
  const known = slices.every((slice) => slice.cpuMs !== undefined);
  const cpu = slices.map((slice) => slice.cpuMs ?? 0);
  return {
    perSecond: median(rates),
    slowest: Math.min(...rates),
    fastest: Math.max(...rates),
    p50Ms: median(latencies),
    p99Ms: percentile(latencies, 99),
    cpuMs: known ? sum(cpu) / operations : undefined,
    cpuMsByRound: known ? slices.map((slice, round) => (cpu[round] ?? 0) / slice.operations) : [],
    operations,
  };
}
