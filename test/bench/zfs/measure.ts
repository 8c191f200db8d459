/** Counts, times and growth, the subjects in turn. */
import { load } from '../load.ts';
import { cpuMs } from '../process-tree.ts';
import { median, percentile, sum } from '../statistics.ts';
import type { Seen, Storage } from './storage.ts';
import type { ZfsSubject } from './subject.ts';

export interface Figures {
  readonly operations: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The median of the rounds. */
  readonly perSecond: number;
  /** CPU time of an operation on the controller's side, and on the storage host. */
  readonly controllerCpuMs: number;
  readonly storageCpuMs: number;
}

/** What there is to find out about one subject; keys are what was done. */
export interface SubjectFigures {
  readonly name: string;
  readonly seen: Readonly<Record<string, Seen>>;
  readonly times: Readonly<Record<string, Figures>>;
  /** By the number of volumes that are there. */
  readonly growth: Readonly<Record<number, Readonly<Record<string, Figures>>>>;
}

/** What the host can do at all: pairs a second, and its CPU for a pair in milliseconds; by the number of loops. */
export type FloorFigures = Readonly<Record<number, Pick<Figures, 'perSecond' | 'storageCpuMs'>>>;

export interface Measurements {
  readonly subjects: readonly SubjectFigures[];
  readonly floor: FloorFigures;
}

export interface MeasureOptions {
  readonly rounds: number;
  /** Milliseconds that a subject is measured for in each round. */
  readonly sliceMs: number;
  readonly volumes: readonly number[];
  readonly onProgress: (text: string) => void;
}

interface Case {
  readonly name: string;
  readonly concurrency: number;
  readonly run: (subject: ZfsSubject) => Promise<unknown>;
}

let made = 0;

async function pair(subject: ZfsSubject): Promise<void> {
  const name = `bench-${++made}`;
  await subject.create(name);
  await subject.remove(name);
}

const cases: readonly Case[] = [
  { name: 'Create+Delete (1)', concurrency: 1, run: pair },
  { name: 'Create+Delete (16)', concurrency: 16, run: pair },
  { name: 'GetCapacity (1)', concurrency: 1, run: (subject) => subject.capacity() },
];

const growthCases: readonly Case[] = [
  { name: 'ListVolumes', concurrency: 1, run: (subject) => subject.list() },
  {
    name: 'ListVolumes, two pages of 100',
    concurrency: 1,
    run: (subject) => subject.listTwoPages?.() ?? Promise.resolve(),
  },
  { name: 'Create+Delete (1)', concurrency: 1, run: pair },
];

export async function measureZfs(
  storage: Storage,
  subjects: readonly ZfsSubject[],
  options: MeasureOptions,
): Promise<Measurements> {
  const { volumes, onProgress } = options;
  onProgress('warming up');
  for (const subject of subjects) {
    for (let count = 0; count < 3; count++) {
      await pair(subject);
      await subject.capacity();
    }
  }
  onProgress('commands and round trips');
  const seen = new Map<ZfsSubject, Readonly<Record<string, Seen>>>();
  for (const subject of subjects) seen.set(subject, await countCommands(storage, subject));
  const times = await measureCases(storage, subjects, cases, options);
  const floor = await measureFloor(storage, options);
  const growth = new Map<number, Measured>();
  for (const count of volumes) {
    onProgress(`making ${count} volumes`);
    await storage.fill(count);
    growth.set(count, await measureCases(storage, subjects, growthCases, { ...options, rounds: 2, sliceMs: 1 }));
  }
  const figures = subjects.map((subject) => ({
    name: subject.name,
    seen: seen.get(subject) ?? {},
    times: times.get(subject) ?? {},
    growth: Object.fromEntries([...growth].map(([count, found]) => [count, found.get(subject) ?? {}])),
  }));
  return { subjects: figures, floor };
}

async function measureFloor(storage: Storage, { rounds, sliceMs, onProgress }: MeasureOptions): Promise<FloorFigures> {
  const found: Record<number, FloorFigures[number]> = {};
  for (const loops of [1, 16]) {
    onProgress(`floor (${loops})`);
    const slices = [];
    for (let round = 0; round < rounds; round++) {
      const before = await storage.cpuMs();
      const { pairs, wallMs } = await storage.floor(loops, sliceMs);
      slices.push({ pairs, perSecond: (pairs / wallMs) * 1000, cpuMs: (await storage.cpuMs()) - before });
    }
    found[loops] = {
      perSecond: median(slices.map(({ perSecond }) => perSecond)),
      storageCpuMs: sum(slices.map(({ cpuMs: used }) => used)) / sum(slices.map(({ pairs }) => pairs)),
    };
  }
  return found;
}

async function countCommands(storage: Storage, subject: ZfsSubject): Promise<Readonly<Record<string, Seen>>> {
  const name = `bench-counted-${++made}`;
  return {
    CreateVolume: await storage.watch(() => subject.create(name)),
    'CreateVolume again': await storage.watch(() => subject.createAgain(name)),
    GetCapacity: await storage.watch(() => subject.capacity()),
    ListVolumes: await storage.watch(() => subject.list()),
    DeleteVolume: await storage.watch(() => subject.remove(name)),
  };
}

type Measured = ReadonlyMap<ZfsSubject, Readonly<Record<string, Figures>>>;

/** A B, B A …: whatever else the machine does hits all alike. */
async function measureCases(
  storage: Storage,
  subjects: readonly ZfsSubject[],
  all: readonly Case[],
  { rounds, sliceMs, onProgress }: MeasureOptions,
): Promise<Measured> {
  const found = new Map(subjects.map((subject) => [subject, {} as Record<string, Figures>]));
  for (const one of all) {
    const slices = new Map(subjects.map((subject) => [subject, [] as Slice[]]));
    for (let round = 0; round < rounds; round++) {
      onProgress(`${one.name}, round ${round + 1}`);
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        slices.get(subject)?.push(await measureSlice(storage, subject, one, sliceMs));
      }
    }
    for (const [subject, ofIt] of slices) {
      const figures = found.get(subject);
      if (figures) figures[one.name] = figuresOf(ofIt);
    }
  }
  return found;
}

type Slice = Awaited<ReturnType<typeof measureSlice>>;

async function measureSlice(storage: Storage, subject: ZfsSubject, one: Case, sliceMs: number) {
  const before = [await cpuMs(subject.pid), await storage.cpuMs()] as const;
  const result = await load(() => one.run(subject), one.concurrency, sliceMs);
  const after = [await cpuMs(subject.pid), await storage.cpuMs()] as const;
  return { ...result, controllerCpuMs: after[0] - before[0], storageCpuMs: after[1] - before[1] };
}

function figuresOf(slices: readonly Slice[]): Figures {
  const latencies = slices.flatMap(({ latenciesMs }) => latenciesMs);
  const operations = sum(slices.map((slice) => slice.operations));
  return {
    operations,
    p50Ms: median(latencies),
    p99Ms: percentile(latencies, 99),
    perSecond: median(slices.map((slice) => (slice.operations / slice.wallMs) * 1000)),
    controllerCpuMs: sum(slices.map((slice) => slice.controllerCpuMs)) / operations,
    storageCpuMs: sum(slices.map((slice) => slice.storageCpuMs)) / operations,
  };
}
