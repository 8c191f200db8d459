/** The results as tables for people, with democratic-csi's recorded figures beside them. */
import { table } from '../../src/cli/output/table.ts';
import { aims } from './aims.ts';
import { growthPer100k } from './measure-growth.ts';
import { callsBeforeMemory } from './measure-starts.ts';
import type { Memory } from './process-tree.ts';
import { recordedAfterCalls, recordedCases, recordedCommands, recordedName, recordedStart } from './recorded.ts';
import type { Results, SubjectResult } from './results.ts';

type Row = readonly string[];

/** @param colours whether the reader is a terminal */
export function report(results: Results, colours: boolean): string {
  const section = (title: string, head: Row, rows: readonly Row[]) =>
    rows.length === 0 ? [] : [`${title}\n${table(head, rows, colours)}`];
  const measured = results.subjects.filter((subject) => Object.keys(subject.cases).length > 0);
  const columns = [...measured.map(({ name }) => name), recordedName];
  const { cores, kernel, loadAverage } = results.machine;
  return [
    `${cores} cores, Linux ${kernel}, load ${loadAverage.map((one) => one.toFixed(1)).join(' ')}; ×: against ${recordedName}\n`,
    ...section(`Start: exec to first Probe, and memory (RSS / PSS)`, startHead, startRows(results)),
    ...section('CPU ms per operation', ['', ...columns], cpuRows(measured)),
    ...section('Operations per second', ['', ...columns], rateRows(measured)),
    ...section('p50 / p99 ms', ['', ...columns], latencyRows(measured)),
    ...section('Programs started per call', ['', ...columns], commandRows(measured)),
    ...section('The proxy’s own cost: CPU time of a call, against direct', ['', '1', '32'], proxyRows(results)),
    ...section('Memory over many calls', ['', 'CALLS', 'RSS MiB', 'PSS MiB', 'OPEN FILES'], growthRows(results)),
    ...section('Aims', ['', 'AIM', 'MEASURED', ''], aimRows(results)),
  ].join('\n');
}

const startHead = ['', 'MS', 'MIN..MAX', 'CPU MS', 'AT START', `AFTER ${callsBeforeMemory} CALLS`];

function startRows({ subjects }: Results): Row[] {
  const started = subjects.filter(({ start }) => start !== undefined);
  if (started.length === 0) return [];
  const rows = started.map(({ name, start }) => [
    name,
    withRatio(start!.wallMs, recordedStart.wallMs, 0),
    `${start!.wallMsMin.toFixed(0)}..${start!.wallMsMax.toFixed(0)}`,
    withRatio(start!.cpuMs, recordedStart.cpuMs, 0),
    memory(start!.memory, recordedStart),
    start!.memoryAfterCalls ? memory(start!.memoryAfterCalls, recordedAfterCalls) : '–',
  ]);
  const { wallMs, cpuMs } = recordedStart;
  const recorded = [String(wallMs), '639..1507', String(cpuMs), memory(recordedStart), memory(recordedAfterCalls)];
  return [...rows, [recordedName, ...recorded]];
}

function memory({ rssMiB, pssMiB }: Memory, recorded?: Memory): string {
  const ratio = recorded ? `  ×${(rssMiB / recorded.rssMiB).toFixed(2)}` : '';
  return `${rssMiB.toFixed(1)} / ${pssMiB.toFixed(1)} MiB${ratio}`;
}

const cpuRows = (subjects: readonly SubjectResult[]) =>
  caseRows(subjects, (name, concurrency) => {
    const recorded = recordedCases[name]?.[concurrency]?.cpuMs;
    const cells = subjects.map(({ cases }) => withRatio(cases[name]?.[concurrency]?.cpuMs, recorded, 3));
    return [...cells, number(recorded, 2)];
  });

const rateRows = (subjects: readonly SubjectResult[]) =>
  caseRows(subjects, (name, concurrency) => {
    const recorded = recordedCases[name]?.[concurrency]?.perSecond;
    const cells = subjects.map(({ cases }) => withRatio(cases[name]?.[concurrency]?.perSecond, recorded, 0));
    return [...cells, number(recorded, 0)];
  });

const latencyRows = (subjects: readonly SubjectResult[]) =>
  caseRows(subjects, (name, concurrency) => {
    const all = [...subjects.map(({ cases }) => cases[name]?.[concurrency]), recordedCases[name]?.[concurrency]];
    return all.map((one) => `${number(one?.p50Ms, 2)} / ${number(one?.p99Ms, 2)}`);
  });

function caseRows(subjects: readonly SubjectResult[], cells: (name: string, concurrency: number) => Row): Row[] {
  return Object.entries(subjects[0]?.cases ?? {}).flatMap(([name, byConcurrency]) =>
    Object.keys(byConcurrency).map((concurrency) => [`${name} (${concurrency})`, ...cells(name, Number(concurrency))]),
  );
}

function commandRows(subjects: readonly SubjectResult[]): Row[] {
  const names = [...new Set(subjects.flatMap(({ commands }) => Object.keys(commands ?? {})))];
  return names.map((name) => {
    const cells = subjects.map(({ commands }) => {
      const started = commands?.[name];
      if (started === undefined) return '–';
      return started.length === 0 ? '0' : `${started.length} (${started.join(', ')})`;
    });
    return [name, ...cells, number(recordedCommands[name] ?? (name === 'Probe' ? 0 : undefined), 0)];
  });
}

function proxyRows({ proxyCost }: Results): Row[] {
  const names = [...new Set(proxyCost.map((one) => one.case))];
  return names.map((name) => {
    const of = (concurrency: number) => {
      const found = proxyCost.find((one) => one.case === name && one.concurrency === concurrency);
      if (!found) return '–';
      const doubt = Number.isFinite(found.plusMinus) ? ` ±${found.plusMinus.toFixed(1)}` : '';
      return `${signed(found.percent)} %${doubt} (${signed(found.ms, 3)} ms)`;
    };
    return [name, of(1), of(32)];
  });
}

function growthRows({ subjects }: Results): Row[] {
  return subjects.flatMap(({ name, growth = [] }) => {
    const rows = growth.map(({ calls, rssMiB, pssMiB, openFiles }) => [
      name,
      String(calls),
      rssMiB.toFixed(1),
      pssMiB.toFixed(1),
      String(openFiles),
    ]);
    if (growth.length < 4) return rows;
    const slope = growthPer100k(growth);
    return [...rows, [name, 'second half', `${signed(slope)} per 100,000 calls`, '', '']];
  });
}

const aimRows = (results: Results): Row[] =>
  aims(results).map(({ what, limit, value, unit, isMet }) => [
    what,
    `${limit} ${unit}`,
    `${value} ${unit}`,
    isMet ? '✓' : '✗',
  ]);

const signed = (value: number, digits = 1) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`;

const number = (value: number | undefined, digits: number) => (value === undefined ? '–' : value.toFixed(digits));

function withRatio(value: number | undefined, recorded: number | undefined, digits: number): string {
  if (value === undefined || recorded === undefined) return number(value, digits);
  return `${value.toFixed(digits)}  ×${(value / recorded).toFixed(2)}`;
}
