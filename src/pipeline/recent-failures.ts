/** The calls that failed last, for people. */
import type { FailedCall } from './pipeline.ts';

export interface RecentFailures {
  add(failed: FailedCall): void;
  /** Newest first. */
  list(): readonly FailedCall[];
}

/** Characters kept of one text: a caller can send names of any length, and a hundred of them stay. */
const textLimit = 1000;

/** Keeps the last `limit` of them. */
export function createRecentFailures(limit = 100): RecentFailures {
  const kept: FailedCall[] = [];
  return {
    add(failed) {
      kept.push({ ...failed, message: shortened(failed.message), summary: shortenedFields(failed.summary) });
      if (kept.length > limit) kept.shift();
    },
    list: () => kept.toReversed(),
  };
}

function shortenedFields(fields: FailedCall['summary']): FailedCall['summary'] {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shortened(String(value))]));
}

function shortened(text: string): string {
  return text.length > textLimit ? `${text.slice(0, textLimit - 1)}…` : text;
}
