/** What travels with every call, from the door down to the last child process. */
import { CallError } from './errors.ts';
import type { Logger } from './logger.ts';

/** Secrets of one request: never logged, never put into an argument vector. */
export type Secrets = Readonly<Record<string, string>>;

export interface CallContext {
  /** Aborted when the caller cancels, a deadline passes or the process stops; `signal.reason` is a {@link CallError}. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  readonly log: Logger;
  readonly secrets: Secrets;
  /**
   * Runs `work` and says meanwhile what the call is waiting for ("`mount` of nas1:/tank/v1"): the text that a conflicting caller and the
   * operator read when it takes long.
   */
  waitingFor<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Adds a label to the call's log line and metrics, such as the connection it was routed to. */
  label(name: 'connection' | 'driver', value: string): void;
}

/** Throws the reason when the call is over. Call it between steps. */
export function throwIfOver(signal: AbortSignal): void {
  if (signal.aborted) throw reasonOf(signal);
}

/** Why a signal was aborted, as the error the caller gets. */
export function reasonOf(signal: AbortSignal): CallError {
  const reason: unknown = signal.reason;
  if (reason instanceof CallError) return reason;
  const timedOut = reason instanceof Error && reason.name === 'TimeoutError';
  return timedOut
    ? new CallError('DEADLINE_EXCEEDED', 'the time limit of this call passed')
    : new CallError('CANCELLED', 'the call was cancelled');
}

/** Settles as `work` does, or rejects as soon as the signal is aborted. The work itself goes on: use it only for work that watches the signal too. */
export function untilOver<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    return Promise.reject(reasonOf(signal));
  }
  return new Promise((resolve, reject) => {
    const over = () => reject(reasonOf(signal));
    signal.addEventListener('abort', over, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', over));
  });
}

/** A context without a caller: for background work, start-up checks and tests. */
export function detachedContext(log: Logger, signal: AbortSignal = new AbortController().signal): CallContext {
  return {
    signal,
    requestId: 'internal',
    log,
    secrets: {},
    waitingFor: (_what, work) => work(),
    label: () => {},
  };
}
