/** Things that take a while to find out, asked in the background so that no page waits for them. */
import { type CallContext, detachedContext } from '../../core/call.ts';
import { asCallError, CallError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';

export type Answer<T> =
  | { readonly state: 'asking' }
  /** `at`: milliseconds since the epoch. */
  | { readonly state: 'known'; readonly value: T; readonly at: number }
  | { readonly state: 'failed'; readonly message: string; readonly at: number };

export interface Question<T> {
  /** The last answer. Asks again when it is no longer fresh; what hangs is never asked a second time meanwhile. */
  latest(): Answer<T>;
  /** Resolves when there is an answer to what was last asked. */
  answered(): Promise<void>;
}

export interface QuestionOptions<T> {
  readonly ask: (call: CallContext) => Promise<T>;
  readonly log: Logger;
  /** How long an answer is taken for true, in milliseconds. */
  readonly freshMs: number;
  /** Milliseconds after which there is no answer, and the call is aborted. */
  readonly limitMs: number;
  /** Lets only so many questions be asked at once. Default: at once. */
  readonly turn?: (<R>(work: () => Promise<R>) => Promise<R>) | undefined;
}

export function createQuestion<T>(options: QuestionOptions<T>): Question<T> {
  const { freshMs, limitMs, turn = (work) => work() } = options;
  let last: Answer<T> = { state: 'asking' };
  /** What was asked has not ended, though its time may be over. */
  let busy = false;
  let answered = Promise.resolve();

  async function ask(): Promise<void> {
    const controller = new AbortController();
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      const late = new CallError('DEADLINE_EXCEEDED', `no answer within ${limitMs / 1000} s`);
      fail(late);
      controller.abort(late);
      over.resolve();
    }, limitMs).unref();
    const done = (async () => options.ask(detachedContext(options.log, controller.signal)))()
      .then((value) => {
        last = { state: 'known', value, at: Date.now() };
      }, fail)
      .finally(() => {
        clearTimeout(timer);
        busy = false;
      });
    await Promise.race([done, over.promise]);
  }

  function fail(error: unknown): void {
    last = { state: 'failed', message: asCallError(error).message, at: Date.now() };
  }

  return {
    latest() {
      if (!busy && (last.state === 'asking' || Date.now() - last.at >= freshMs)) {
        busy = true;
        answered = turn(ask);
      }
      return last;
    },
    answered: () => answered,
  };
}

/** Runs at most `most` of the works it is given at once, in the order in which they came. */
export function inTurns(most: number): <R>(work: () => Promise<R>) => Promise<R> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
