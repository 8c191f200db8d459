import type { CallFigures, CaseResult } from './measure-calls.ts';
import type { Commands } from './measure-commands.ts';
import type { Sample } from './measure-growth.ts';
import type { Starts } from './measure-starts.ts';
import type { Memory } from './process-tree.ts';
import type { SubjectResult } from './results.ts';
import type { Session } from './session.ts';
import { median } from './statistics.ts';
import type { Subject } from './subject.ts';

export interface Measured {
  readonly subject: Subject;
  readonly session: Session | undefined;
  readonly starts: Starts | undefined;
  readonly calls: readonly CaseResult[];
  readonly commands: Commands | undefined;
  readonly growth: readonly Sample[] | undefined;
}

/** Everything that was found about one subject. */
export function toSubjectResult({ subject, session, starts, calls, commands, growth }: Measured): SubjectResult {
  return {
    name: subject.name,
    ...(starts && { start: startOf(starts) }),
    cases: session ? casesOf(session, calls) : {},
    ...(commands && { commands: Object.fromEntries(commands) }),
    ...(growth && { growth }),
  };
}

function startOf({ wallMs, cpuMs, atStart, afterCalls }: Starts): NonNullable<SubjectResult['start']> {
  return {
    wallMs: median(wallMs),
    wallMsMin: Math.min(...wallMs),
    wallMsMax: Math.max(...wallMs),
    cpuMs: median(cpuMs),
    memory: medianMemory(atStart),
    ...(afterCalls.length > 0 && { memoryAfterCalls: medianMemory(afterCalls) }),
  };
}

const medianMemory = (samples: readonly Memory[]): Memory => ({
  rssMiB: median(samples.map(({ rssMiB }) => rssMiB)),
  pssMiB: median(samples.map(({ pssMiB }) => pssMiB)),
});

function casesOf(session: Session, calls: readonly CaseResult[]): SubjectResult['cases'] {
  const cases: Record<string, Record<number, Omit<CallFigures, 'cpuMsByRound'>>> = {};
  for (const { case: one, concurrency, figures } of calls) {
    const found = figures.get(session);
    if (found === undefined) continue;
    const { cpuMsByRound: _, ...rest } = found;
    cases[one.name] = { ...cases[one.name], [concurrency]: rest };
  }
  return cases;
}
