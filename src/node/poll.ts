import { setTimeout } from 'node:timers/promises';
import { type CallContext, reasonOf, throwIfOver } from '../core/call.ts';

/** Milliseconds between two looks: short at first, for what is there in a moment. */
const firstPause = 5;
const longestPause = 200;

/** Looks again and again until there is an answer; undefined when there is none after `limitMs` milliseconds. Rejects when the call is over. */
export async function poll<T>(
  call: Pick<CallContext, 'signal'>,
  limitMs: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const end = performance.now() + limitMs;
  for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
    throwIfOver(call.signal);
    const answer = await look();
    const left = end - performance.now();
    if (answer !== undefined || left <= 0) return answer;
    await setTimeout(Math.min(pause, left), undefined, { signal: call.signal }).catch(() => {
      throw reasonOf(call.signal);
    });
  }
}
