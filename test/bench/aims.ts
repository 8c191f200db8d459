/** What this program wants to reach, and whether it did. Only said, never asserted: times depend on the machine. */
import { growthPer100k } from './measure-growth.ts';
import { recordedCases, recordedStart } from './recorded.ts';
import type { Results } from './results.ts';

export interface Aim {
  readonly what: string;
  readonly limit: string;
  readonly value: string;
  readonly unit: string;
  readonly isMet: boolean;
}

/** MiB per 100,000 calls that are the noise of a collected heap. */
const growthNoise = 2;

/** The aims that these results tell something about. */
export function aims({ subjects, proxyCost }: Results): Aim[] {
  const direct = subjects.find(({ name }) => name === 'direct');
  const growth = subjects.filter(({ growth = [] }) => growth.length >= 4);
  const quarter = (name: string) =>
    atMost(
      `${name}, CPU`,
      (recordedCases[name]?.[1]?.cpuMs ?? Number.NaN) / 4,
      direct?.cases[name]?.[1]?.cpuMs,
      2,
      'ms',
    );
  return [
    atMost('start of the executable', 120, direct?.start?.wallMs, 0, 'ms'),
    atMost('memory at start, RSS', recordedStart.rssMiB / 2, direct?.start?.memory.rssMiB, 1, 'MiB'),
    quarter('Create+Delete'),
    quarter('Publish+Unpublish'),
    ...proxyCost
      .filter(({ concurrency }) => concurrency === 1)
      .map((one) => atMost(`the proxy’s part of ${one.case}`, 5, one.percent, 1, '%')),
    ...growth.map(({ name, growth = [] }) =>
      atMost(`growth over 100,000 calls, ${name}`, growthNoise, growthPer100k(growth), 1, 'MiB'),
    ),
  ].filter((aim) => aim !== undefined);
}

function atMost(what: string, limit: number, value: number | undefined, digits: number, unit: string): Aim | undefined {
  if (value === undefined) return undefined;
  return { what, limit: `≤ ${limit.toFixed(digits)}`, value: value.toFixed(digits), unit, isMet: value <= limit };
}
