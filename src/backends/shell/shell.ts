/** Where commands for a storage are run: on this host, or on another one over SSH. */
import type { CallContext } from '../../core/call.ts';

export interface ShellScript {
  /** Given to `/bin/sh` on its standard input. Words from outside are in it only as {@link quote} gives them. */
  readonly text: string;
  /** What it does, for logs, metrics and messages, without anything that varies from volume to volume: `zfs create`. */
  readonly title: string;
  /** Milliseconds until it is ended. Undefined: it takes as long as it takes, until the call is over. */
  readonly timeoutMs: number | undefined;
  /** Told of each piece of standard error while it runs: the progress of copies. */
  readonly onStderr?: ((text: string) => void) | undefined;
}

export interface ShellOutput {
  /** Null when a signal ended it. */
  readonly code: number | null;
  /** `TERM`, `KILL` … */
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** More was written than is kept: whoever decides by a list must not act on half of it. */
  readonly truncated: boolean;
}

export interface Shell {
  /** For messages: `nas1`, or `this host`. */
  readonly host: string;
  /**
   * Runs a script to its end, whatever its exit code. Throws UNAVAILABLE when the host cannot be reached or is lost meanwhile, DEADLINE_EXCEEDED
   * when the time limit passes, the signal's reason when the call is over; the script and what it started is ended then.
   */
  run(call: Pick<CallContext, 'signal' | 'log' | 'waitingFor'>, script: ShellScript): Promise<ShellOutput>;
  /** Gives up what it holds. Scripts that run are not waited for. */
  close(): Promise<void>;
}

/** Bytes kept of each output stream: a list of ten thousand volumes with all their properties fits. */
export const shellOutputLimit = 64 * 2 ** 20;
