/**
 * Join, don't refuse.
 *
 * A request that equals one already running waits for it and gets its answer. A different request that touches the same thing is ABORTED with
 * a message saying what holds it, since when and what that waits for. A caller whose deadline passes only stops waiting: the work goes on and
 * its retry joins it. A caller who cancels takes the work with him, unless somebody else still wants it.
 */
import { type Activity, createActivity } from './activity.ts';
import type { CallContext } from './call.ts';
import { reasonOf, throwIfOver, untilOver } from './call.ts';
import { CallError } from './errors.ts';

/** Something an operation must have for itself, or may share with others that only share it too. */
export interface Claim {
  /** Such as `volume v1` or `target /path`. Shown to people. */
  readonly on: string;
  readonly shared?: boolean;
}

export interface OperationRequest {
  /** The call and what it is about, such as `CreateSnapshot s1`. Shown to people. */
  readonly title: string;
  /** Equal requests have equal keys. It is compared, never shown: it may hold secrets. */
  readonly key: string;
  readonly claims: readonly Claim[];
  /** The operation is aborted after this many milliseconds. */
  readonly limitMs: number;
  /**
   * Ends, and waits for the end of, operations that have for themselves what this one wants, when nobody waits for them any more. Those that only
   * share it, such as copies of a volume into others, are not ended.
   */
  readonly endsAbandoned?: boolean;
}

/** An operation in flight, for people. */
export interface ActiveOperation {
  readonly title: string;
  readonly requestId: string;
  readonly startedAt: number;
  readonly waitingFor: string | undefined;
  /** Request ids of the calls that wait for the answer now. None: nobody waits, and the work goes on for the retry. */
  readonly callers: readonly string[];
}

export interface Operations {
  run<T>(call: CallContext, request: OperationRequest, work: (call: CallContext) => Promise<T>): Promise<T>;
  active(): readonly ActiveOperation[];
  /** Aborts what still runs and resolves when all of it has ended. */
  stop(): Promise<void>;
}

interface Running {
  readonly request: OperationRequest;
  readonly requestId: string;
  readonly startedAt: number;
  readonly activity: Activity;
  readonly controller: AbortController;
  readonly callers: CallContext[];
  /** A caller left because of a deadline: his retry will want the result. */
  kept: boolean;
  result: Promise<unknown>;
}

export function createOperations(now: () => number = Date.now): Operations {
  const running = new Map<string, Running>();

  function start<T>(call: CallContext, request: OperationRequest, work: (call: CallContext) => Promise<T>): Running {
    for (const other of running.values()) {
      const clash = conflict(request.claims, other.request.claims);
      if (clash) throw new CallError('ABORTED', explain(request, clash, other, now()));
    }
    const controller = new AbortController();
    const activity = createActivity();
    const operation: Running = {
      request,
      requestId: call.requestId,
      startedAt: now(),
      activity,
      controller,
      callers: [],
      kept: false,
      result: Promise.resolve(),
    };
    running.set(request.key, operation);
    const timer = setTimeout(
      () => controller.abort(new CallError('DEADLINE_EXCEEDED', overLimit(operation))),
      request.limitMs,
    );
    operation.result = work({ ...call, signal: controller.signal, waitingFor: activity.waitingFor }).finally(() => {
      clearTimeout(timer);
      running.delete(request.key);
    });
    operation.result.catch(() => {});
    return operation;
  }

  async function endAbandoned(call: CallContext, request: OperationRequest): Promise<void> {
    const reason = new CallError('ABORTED', `it was ended by ${request.title}`);
    const inTheWay = [...running.values()].filter((one) => one.callers.length === 0 && isTaken(request, one.request));
    for (const one of inTheWay) one.controller.abort(reason);
    await untilOver(call.signal, Promise.allSettled(inTheWay.map((one) => one.result)));
  }

  return {
    async run<T>(call: CallContext, request: OperationRequest, work: (call: CallContext) => Promise<T>): Promise<T> {
      throwIfOver(call.signal);
      if (request.endsAbandoned && !running.has(request.key)) await endAbandoned(call, request);
      let existing = running.get(request.key);
      while (existing?.controller.signal.aborted) {
        await untilOver(call.signal, Promise.allSettled([existing.result]));
        existing = running.get(request.key);
      }
      if (existing) call.log.verbose('joined an equal call in flight', { operation: existing.requestId });
      const operation = existing ?? start(call, request, work);
      operation.callers.push(call);
      try {
        return await untilOver(call.signal, operation.result as Promise<T>);
      } finally {
        operation.callers.splice(operation.callers.indexOf(call), 1);
        if (call.signal.aborted) leave(operation, reasonOf(call.signal));
      }
    },
    active: () =>
      [...running.values()].map((one) => ({
        title: one.request.title,
        requestId: one.requestId,
        startedAt: one.startedAt,
        waitingFor: one.activity.current(),
        callers: one.callers.map((call) => call.requestId),
      })),
    async stop() {
      const reason = new CallError('UNAVAILABLE', 'the plugin is stopping; the same call again will complete this');
      const results = [...running.values()].map((one) => {
        one.controller.abort(reason);
        return one.result;
      });
      await Promise.allSettled(results);
    },
  };
}

/** A caller is gone: ends the work if nobody else is waiting and nobody is expected back. */
function leave(operation: Running, reason: CallError): void {
  if (reason.code === 'DEADLINE_EXCEEDED') operation.kept = true;
  if (operation.callers.length === 0 && !operation.kept) operation.controller.abort(reason);
}

function conflict(wanted: readonly Claim[], held: readonly Claim[]): string | undefined {
  const clash = wanted.find((want) => held.some((hold) => hold.on === want.on && !(hold.shared && want.shared)));
  return clash?.on;
}

/** Whether `held` has for itself something that `wanted` wants. */
function isTaken(wanted: OperationRequest, held: OperationRequest): boolean {
  return wanted.claims.some((want) => held.claims.some((hold) => hold.on === want.on && !hold.shared));
}

function explain(request: OperationRequest, on: string, other: Running, now: number): string {
  const age = Math.round((now - other.startedAt) / 1000);
  const waiting = other.activity.current();
  const where = waiting === undefined ? '' : `, in ${waiting}`;
  return `${request.title} must wait: ${on} is held by ${other.request.title} (${age} s${where}); try again later`;
}

function overLimit(operation: Running): string {
  const waiting = operation.activity.current();
  const where = waiting === undefined ? '' : ` while waiting for ${waiting}`;
  return `${operation.request.title} passed its limit of ${Math.round(operation.request.limitMs / 1000)} s${where}`;
}
