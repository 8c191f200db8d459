/** A caller's patience as an AbortSignal. */
import type { ServerUnaryCall } from '@grpc/grpc-js';
import { CallError } from '../../core/errors.ts';

/**
 * A client that reaches its deadline resets the stream, which looks like a cancellation and comes a moment before our own clock agrees.
 * Within this many milliseconds of the deadline it is the deadline.
 */
const clockSlackMs = 1000;

/**
 * Aborted with DEADLINE_EXCEEDED when the caller's deadline passes, with CANCELLED when he cancels or disconnects before. The difference
 * matters: work goes on after a deadline, for the retry, and stops after a cancellation.
 */
export function callerSignal(call: ServerUnaryCall<object, object>): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const deadline = Number(call.getDeadline());
  const onCancelled = () =>
    controller.abort(
      Date.now() >= deadline - clockSlackMs
        ? new CallError('DEADLINE_EXCEEDED', "the caller's deadline passed; the same call again finds the result")
        : new CallError('CANCELLED', 'the caller cancelled'),
    );
  if (call.cancelled) onCancelled();
  call.on('cancelled', onCancelled);
  return { signal: controller.signal, release: () => call.off('cancelled', onCancelled) };
}
