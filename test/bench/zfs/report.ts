/** The results as tables for people. */
import { table } from '../../../src/cli/output/table.ts';
import type { Figures, FloorFigures, Measurements, SubjectFigures } from './measure.ts';

type Row = readonly string[];

/** The first subject against the second. @param colours whether the reader is a terminal */
export function reportZfs({ subjects, floor }: Measurements, machine: string, colours: boolean): string {
  const [own, other] = subjects;
  if (!own || !other) return '';
  const section = (title: string, head: Row, rows: readonly Row[]) => `${title}\n${table(head, rows, colours)}`;
  const head = ['', own.name, other.name, 'RATIO'];
  const growth = Object.keys(own.growth).map(Number);
  return [
    `${machine}; the other: the commands that democratic-csi sends for the same, without itself\n`,
    section(
      'Round trips (sessions, or scripts in a session, that the SSH server’s host counted)',
      head,
      countRows(own, other, (one) => one.roundTrips),
    ),
    section(
      'Programs started on the storage host',
      head,
      countRows(own, other, (one) => one.commands.length),
    ),
    section(
      'Latency p50, ms',
      head,
      timeRows(own, other, ({ p50Ms }) => p50Ms, 0),
    ),
    section(
      'Latency p99, ms',
      head,
      timeRows(own, other, ({ p99Ms }) => p99Ms, 0),
    ),
    section(
      'Operations per second',
      head,
      timeRows(own, other, ({ perSecond }) => perSecond, 2),
    ),
    section(
      'CPU of the storage host, ms an operation',
      head,
      timeRows(own, other, (one) => one.storageCpuMs, 0),
    ),
    section(
      'CPU of the controller, ms an operation',
      head,
      timeRows(own, other, (one) => one.controllerCpuMs, 1),
    ),
    section(
      'With so many volumes: p50 ms',
      ['', ...growth.map(String), 'GROWTH'],
      [...growthRows(own, ({ p50Ms }) => p50Ms), ...growthRows(other, ({ p50Ms }) => p50Ms)],
    ),
    section(
      'With so many volumes: CPU of the storage host, ms',
      ['', ...growth.map(String), 'GROWTH'],
      [...growthRows(own, (one) => one.storageCpuMs), ...growthRows(other, (one) => one.storageCpuMs)],
    ),
    section(
      'Floor: zfs create and zfs destroy alone, in shells of the storage host',
      ['Create+Delete', own.name, 'floor', 'RATIO'],
      floorRows(own, floor),
    ),
    section('Aims', ['', 'AIM', 'MEASURED', ''], aimRows(own)),
  ].join('\n');
}

function floorRows({ times }: SubjectFigures, floor: FloorFigures): Row[] {
  return Object.entries(floor).flatMap(([loops, { perSecond, storageCpuMs }]) => {
    const found = times[`Create+Delete (${loops})`];
    if (!found) return [];
    return [
      compared(`at once: ${loops}, a second`, found.perSecond, perSecond, 2),
      compared(`at once: ${loops}, CPU ms of the host`, found.storageCpuMs, storageCpuMs, 0),
    ];
  });
}

type CountOf = (seen: SubjectFigures['seen'][string]) => number;

const countRows = (own: SubjectFigures, other: SubjectFigures, of: CountOf): Row[] =>
  Object.entries(own.seen).map(([name, seen]) => {
    const that = other.seen[name];
    return compared(name, of(seen), that ? of(that) : undefined, 0);
  });

const timeRows = (
  own: SubjectFigures,
  other: SubjectFigures,
  of: (figures: Figures) => number,
  digits: number,
): Row[] =>
  Object.entries(own.times).map(([name, figures]) => {
    const that = other.times[name];
    return compared(name, of(figures), that ? of(that) : undefined, digits);
  });

function compared(name: string, own: number, other: number | undefined, digits: number): Row {
  if (other === undefined) return [name, own.toFixed(digits), '–', ''];
  return [name, own.toFixed(digits), other.toFixed(digits), `×${(own / other).toFixed(2)}`];
}

/** Growth: by which power of the number of volumes it grows, from the smallest to the largest number; 1 is linear. */
function growthRows({ name, growth }: SubjectFigures, of: (figures: Figures) => number): Row[] {
  const steps = Object.entries(growth);
  return Object.keys(steps[0]?.[1] ?? {})
    .filter((one) => steps.every(([, found]) => of(found[one] as Figures) > 1))
    .map((one) => {
      const values = steps.map(([, found]) => of(found[one] as Figures));
      return [
        `${one}: ${name}`,
        ...values.map((value) => value.toFixed(0)),
        `^${power({ growth }, one, of).toFixed(2)}`,
      ];
    });
}

function power({ growth }: Pick<SubjectFigures, 'growth'>, name: string, of: (figures: Figures) => number): number {
  const counts = Object.keys(growth).map(Number);
  const [first = 0, last = 0] = [counts.at(0), counts.at(-1)];
  const at = (count: number) => {
    const found = growth[count]?.[name];
    return found ? of(found) : Number.NaN;
  };
  return Math.log(at(last) / at(first)) / Math.log(last / first);
}

function aimRows(own: SubjectFigures): Row[] {
  const { seen, times, growth } = own;
  const powers = Object.keys(Object.values(growth)[0] ?? {}).map((name) => power(own, name, ({ p50Ms }) => p50Ms));
  const aim = (what: string, limit: number, value: number | undefined, isMet: (value: number) => boolean): Row[] =>
    value === undefined || !Number.isFinite(value)
      ? []
      : [[what, String(limit), value.toFixed(value < 10 ? 2 : 0), isMet(value) ? '✓' : '✗']];
  return [
    ...aim('CreateVolume, round trips at most', 3, seen.CreateVolume?.roundTrips, (value) => value <= 3),
    ...aim('Create+Delete (1), ms under', 250, times['Create+Delete (1)']?.p50Ms, (value) => value < 250),
    ...aim('Create+Delete (16), a second at least', 10, times['Create+Delete (16)']?.perSecond, (value) => value >= 10),
    ...aim('GetCapacity, ms under', 45, times['GetCapacity (1)']?.p50Ms, (value) => value < 45),
    ...aim('steepest growth, power at most', 1, Math.max(...powers), (value) => value <= 1.05),
  ];
}
