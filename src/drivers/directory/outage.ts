/** Remembers that something does not answer, so that not every call waits for it: pauses that double while it lasts. */
import { CallError } from '../../core/errors.ts';

/** Milliseconds. */
const firstPause = 1000;
const longestPause = 30_000;

export interface Outage {
  /** It has failed once more. */
  begin(why: string): void;
  /** It works. */
  end(): void;
  /** Whether it failed the last time it was asked. */
  readonly lasts: boolean;
  /** Throws UNAVAILABLE until it is time to ask again. */
  throwIfPausing(): void;
}

/** `title`: what does not answer, for people. `clock`: milliseconds. */
export function createOutage(title: string, clock: () => number = () => performance.now()): Outage {
  let failures = 0;
  let since = 0;
  let nextAt = 0;
  let reason = '';
  return {
    begin(why) {
      const now = clock();
      if (failures === 0) since = now;
      nextAt = now + Math.min(longestPause, firstPause * 2 ** failures);
      failures++;
      reason = why;
    },
    end() {
      failures = 0;
    },
    get lasts() {
      return failures > 0;
    },
    throwIfPausing() {
      const now = clock();
      if (failures === 0 || now >= nextAt) return;
      const seconds = (ms: number) => `${Math.ceil(ms / 1000)} s`;
      throw new CallError(
        'UNAVAILABLE',
        `${title} is out of reach for ${seconds(now - since)}: ${reason}; it is asked again in ${seconds(nextAt - now)}`,
      );
    },
  };
}
