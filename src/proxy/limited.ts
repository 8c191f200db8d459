import type { CallContext } from '../core/call.ts';
import { untilOver } from '../core/call.ts';
import { CallError } from '../core/errors.ts';

/**
 * Runs `work` for at most `limitMs` milliseconds, so that one connection cannot use up the time of a call that asks many. The work's signal is
 * aborted then, and nobody waits for it any longer. Throws UNAVAILABLE. What labels the work does not label the call.
 */
export async function limited<T>(
  call: CallContext,
  limitMs: number,
  work: (call: CallContext) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(
    () => limit.abort(new CallError('UNAVAILABLE', `it did not answer within ${limitMs / 1000} s`)),
    limitMs,
  );
  const signal = AbortSignal.any([call.signal, limit.signal]);
  try {
    return await untilOver(signal, work({ ...call, signal, label: () => {} }));
  } finally {
    clearTimeout(timer);
  }
}
