/** The life of one child process: it ends by itself, or its whole process group is ended when its time or its caller is over. */
import { reasonOf } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Child } from './child.ts';
import { killGroup } from './kill-group.ts';

export interface Supervision {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** What the caller is told when the time limit passes. */
  readonly overLimit: string;
  /** Between SIGTERM and SIGKILL. */
  readonly killGraceMs: number;
  /** Between SIGKILL and giving up on a child that the kernel cannot end, such as one waiting for a dead disk. */
  readonly abandonMs: number;
}

export interface Ending {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** It could not be started. */
  readonly spawnError?: Error | undefined;
  /** Why it was ended from here. */
  readonly reason?: CallError | undefined;
  /** It is still there although it was killed. */
  readonly abandoned: boolean;
}

/** How long the pipes of a child that has ended may stay open: daemons that a mount helper leaves behind inherit and keep them. */
const drainMs = 200;
/** In how many turns of the event loop they may have more to say after that. */
const drainTurns = 100;

/** Resolves when the child is reaped and its output read, or was given up. The child must lead a process group of its own. Never rejects. */
export function supervise(child: Child, limits: Supervision): Promise<Ending> {
  return new Promise((resolve) => {
    let exitCode: number | null = null;
    let exitSignal: string | null = null;
    let reason: CallError | undefined;
    let next: NodeJS.Timeout | undefined;

    const later = (ms: number, step: () => void) => {
      clearTimeout(next);
      next = setTimeout(step, ms);
    };
    const finish = (more: { spawnError?: Error; abandoned?: boolean } = {}) => {
      clearTimeout(next);
      limits.signal.removeEventListener('abort', onAbort);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
      resolve({ exitCode, signal: exitSignal, reason, abandoned: false, ...more });
    };
    // What a child wrote before it ended may not have been read however long ago that was: where the event loop was held up, timers come before pipes.
    let heard = 0;
    const hear = () => heard++;
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    const drain = (turns: number) => {
      const before = heard;
      setImmediate(() => (heard === before || turns === 0 ? finish() : drain(turns - 1)));
    };
    const end = (why: CallError) => {
      if (reason) return;
      reason = why;
      signalGroup(child, 'SIGTERM');
      later(limits.killGraceMs, () => {
        signalGroup(child, 'SIGKILL');
        later(limits.abandonMs, () => {
          child.unref();
          finish({ abandoned: true });
        });
      });
    };
    const onAbort = () => end(reasonOf(limits.signal));

    child.on('error', (error) => {
      if (child.pid === undefined) finish({ spawnError: error });
    });
    child.once('exit', (code, signal) => {
      exitCode = code;
      exitSignal = signal;
      limits.signal.removeEventListener('abort', onAbort);
      // Its own children may have ignored the SIGTERM that ended it.
      if (reason) signalGroup(child, 'SIGKILL');
      later(drainMs, () => drain(drainTurns));
    });
    child.once('close', () => finish());
    const limited = Number.isFinite(limits.timeoutMs);
    if (limited) later(limits.timeoutMs, () => end(new CallError('DEADLINE_EXCEEDED', limits.overLimit)));
    limits.signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** One that is still being started is signalled when it has been. */
function signalGroup(child: Child, signal: NodeJS.Signals): void {
  if (child.pid === undefined) child.once('spawn', () => signalGroup(child, signal));
  else killGroup(child.pid, signal);
}
