/** What every call goes through on its way in and out: request id, deadline, cancellation, one log line, metrics, and an error made presentable. */
import { randomBytes } from 'node:crypto';
import { type Activity, createActivity } from '../core/activity.ts';
import type { CallContext, Secrets } from '../core/call.ts';
import { asCallError, CallError, type StatusCode } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Meter } from './meter.ts';

export interface IncomingCall {
  /** The method's name without its service, such as `CreateVolume`. */
  readonly method: string;
  /** Aborted with a CallError when the caller has gone or his deadline passed. */
  readonly signal: AbortSignal;
  readonly secrets: Secrets;
  /** The caller's own id for this request, when he sent one. */
  readonly requestId?: string | undefined;
  /** Milliseconds after which the call is given up whatever the caller says; undefined for calls whose work has limits of its own. */
  readonly limitMs?: number | undefined;
  /** What the log shows of it: ids and names at least. */
  readonly summary: Readonly<Record<string, unknown>>;
  /** The request without secrets; only asked for when it is written. */
  readonly details: () => Readonly<Record<string, unknown>>;
  /** True for calls that come by themselves every few seconds: logged at debug unless they fail. */
  readonly routine: boolean;
}

/** A call being answered, for people. */
export interface CallInFlight {
  readonly method: string;
  readonly requestId: string;
  readonly startedAt: number;
  readonly summary: Readonly<Record<string, unknown>>;
  readonly waitingFor: string | undefined;
  /** Where it was routed to, as soon as that is known. */
  readonly connection: string | undefined;
  readonly driver: string | undefined;
}

/** A call that ended with an error. */
export interface FailedCall {
  readonly method: string;
  readonly requestId: string;
  readonly endedAt: number;
  readonly seconds: number;
  readonly summary: Readonly<Record<string, unknown>>;
  readonly code: StatusCode;
  readonly message: string;
  readonly connection: string | undefined;
  readonly driver: string | undefined;
}

export interface Pipeline {
  /** Runs the work of one call. Rejects with nothing but CallError. */
  handle<T>(incoming: IncomingCall, work: (call: CallContext) => Promise<T>): Promise<T>;
  inFlight(): readonly CallInFlight[];
  /** Resolves when no call is in flight. */
  idle(): Promise<void>;
}

export interface PipelineOptions {
  readonly log: Logger;
  readonly metrics: Meter;
  /** Told of every call that fails. */
  readonly onFailure?: ((failed: FailedCall) => void) | undefined;
}

export function createPipeline({ log, metrics, onFailure }: PipelineOptions): Pipeline {
  const calls = new Set<OpenCall>();
  let whenIdle: (() => void)[] = [];

  async function handle<T>(incoming: IncomingCall, work: (call: CallContext) => Promise<T>): Promise<T> {
    const open = openCall(incoming, log);
    calls.add(open);
    metrics.callStarted(incoming.method);
    let failure: CallError | undefined;
    try {
      return await work(open.context);
    } catch (error) {
      failure = asCallError(error);
      if (failure.code === 'INTERNAL') open.context.log.debug('unexpected failure', { stack: stackOf(error) });
      throw failure;
    } finally {
      open.close();
      calls.delete(open);
      report(open, failure);
      if (calls.size === 0) {
        for (const wake of whenIdle) wake();
        whenIdle = [];
      }
    }
  }

  function report(open: OpenCall, failure: CallError | undefined): void {
    const { incoming, labels, context } = open;
    const seconds = (performance.now() - open.startedTick) / 1000;
    const code = failure?.code ?? 'OK';
    const { connection = '', driver = '' } = labels;
    metrics.callEnded({ method: incoming.method, code, connection, driver, seconds });
    if (failure) onFailure?.(failedCall(open, failure, seconds));
    const level = failure ? failureLevel(failure.code) : incoming.routine ? 'debug' : 'info';
    if (!context.log.enabled(level)) return;
    const details = context.log.enabled('verbose') ? { request: incoming.details() } : {};
    context.log[level](incoming.method, {
      code,
      ms: Math.round(seconds * 1e4) / 10,
      ...incoming.summary,
      ...labels,
      ...(failure && { error: failure.message }),
      ...details,
    });
  }

  return {
    handle,
    inFlight: () =>
      [...calls].map((open) => ({
        method: open.incoming.method,
        requestId: open.context.requestId,
        startedAt: open.startedAt,
        summary: open.incoming.summary,
        waitingFor: open.activity.current(),
        connection: open.labels.connection,
        driver: open.labels.driver,
      })),
    idle: () => (calls.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
  };
}

interface OpenCall {
  readonly incoming: IncomingCall;
  readonly context: CallContext;
  readonly startedAt: number;
  readonly startedTick: number;
  readonly activity: Activity;
  readonly labels: { connection?: string; driver?: string };
  close(): void;
}

function openCall(incoming: IncomingCall, log: Logger): OpenCall {
  const requestId = incoming.requestId ?? randomBytes(4).toString('hex');
  const activity = createActivity();
  const labels: OpenCall['labels'] = {};
  const limited = limitedSignal(incoming.signal, incoming.limitMs, incoming.method);
  const context: CallContext = {
    signal: limited.signal,
    requestId,
    log: log.with({ requestId }),
    secrets: incoming.secrets,
    waitingFor: activity.waitingFor,
    label(name, value) {
      labels[name] = value;
    },
  };
  return {
    incoming,
    context,
    startedAt: Date.now(),
    startedTick: performance.now(),
    activity,
    labels,
    close: limited.release,
  };
}

function failedCall({ incoming, context, labels }: OpenCall, failure: CallError, seconds: number): FailedCall {
  return {
    method: incoming.method,
    requestId: context.requestId,
    endedAt: Date.now(),
    seconds,
    summary: incoming.summary,
    code: failure.code,
    message: failure.message,
    connection: labels.connection,
    driver: labels.driver,
  };
}

/** The caller's signal, and a limit of our own for callers that set no deadline (Nomad never does). */
function limitedSignal(caller: AbortSignal, limitMs: number | undefined, method: string) {
  if (limitMs === undefined) return { signal: caller, release: () => {} };
  const controller = new AbortController();
  const follow = () => controller.abort(caller.reason);
  if (caller.aborted) follow();
  caller.addEventListener('abort', follow, { once: true });
  const timer = setTimeout(
    () => controller.abort(new CallError('DEADLINE_EXCEEDED', `${method} took longer than ${limitMs / 1000} s`)),
    limitMs,
  );
  return {
    signal: controller.signal,
    release() {
      clearTimeout(timer);
      caller.removeEventListener('abort', follow);
    },
  };
}

/** A caller's mistake or bad luck is a warning; only a fault of ours is an error. */
function failureLevel(code: StatusCode): 'error' | 'warn' | 'info' {
  if (code === 'INTERNAL' || code === 'UNKNOWN' || code === 'DATA_LOSS') return 'error';
  return code === 'CANCELLED' ? 'info' : 'warn';
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
