import type { CaseResult } from './measure-calls.ts';
import type { ProxyCost } from './results.ts';
import { standardError } from './statistics.ts';

/** How much more CPU time each kind of operation takes behind the proxy; empty unless both were measured. */
export function proxyCosts(results: readonly CaseResult[]): ProxyCost[] {
  return results.flatMap((one) => {
    const of = (name: string) => [...one.figures].find(([session]) => session.subject.name === name)?.[1];
    const direct = of('direct');
    const proxy = of('proxy');
    if (direct?.cpuMs === undefined || proxy?.cpuMs === undefined) return [];
    // The subjects took turns, so each round compares two moments that are close to each other.
    const differences = proxy.cpuMsByRound.map((cpu, round) => cpu - (direct.cpuMsByRound[round] ?? 0));
    return [
      {
        case: one.case.name,
        concurrency: one.concurrency,
        ms: proxy.cpuMs - direct.cpuMs,
        percent: (proxy.cpuMs / direct.cpuMs - 1) * 100,
        plusMinus: (standardError(differences) / direct.cpuMs) * 100,
      },
    ];
  });
}
