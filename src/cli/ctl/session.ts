/** One `ctl` command against one plugin: its options, its calls, its way out. */
import type { Command } from 'commander';
import { CallError } from '../../core/errors.ts';
import type { Init } from '../../generated/csi.js';
import type { Method } from '../../generated/services.js';
import { currentAccount } from '../account.ts';
import { type CsiClient, connect, type TlsOptions } from '../client.ts';
import { type ClientTarget, clientTarget, defaultEndpoint } from '../client-target.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Outcome } from '../outcome.ts';
import { withSpinner } from '../output/spinner.ts';
import { parseSeconds } from '../parse-seconds.ts';
import type { Shell } from '../shell.ts';

export interface Session {
  readonly shell: Shell;
  readonly target: ClientTarget;
  readonly json: boolean;
  readonly colours: boolean;
  /** Set when the call was answered and the answer is no. */
  readonly outcome: Outcome;
  /** Calls the plugin; `doing` is shown while it takes long. */
  call<Request, Response>(doing: string, method: Method<Request, Response>, request: Init<Request>): Promise<Response>;
  /** Prints the result: the text, or with `--json` the value. */
  show(value: unknown, text: string): void;
}

/** Options that every `ctl` command has. */
interface CommonOptions extends TlsOptions {
  readonly endpoint?: string;
  readonly timeout: string;
  readonly json?: boolean;
}

export type SessionWork = (session: Session) => Promise<void>;

/** Runs a subcommand's work in a session: what the definition of each subcommand gets. */
export type Run = (command: Command, work: SessionWork) => Promise<void>;

/** Runs a command's work with Ctrl-C cancelling what it waits for. A call that fails becomes one line and an exit code. */
export async function inSession(command: Command, shell: Shell, outcome: Outcome, work: SessionWork): Promise<void> {
  const options = command.optsWithGlobals<CommonOptions>();
  const timeoutMs = parseSeconds(options.timeout) * 1000;
  const target = clientTarget(options.endpoint ?? (await defaultEndpoint(shell.env, currentAccount())));
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  let client: CsiClient | undefined;
  try {
    const connected = await connect(target, options);
    client = connected;
    await work({
      shell,
      target,
      outcome,
      json: options.json === true,
      colours: shell.outIsTerminal && !shell.env.NO_COLOR,
      call: (doing, method, request) =>
        withSpinner(shell, doing, connected.call(method, request, { signal: interrupted.signal, timeoutMs })),
      show: (value, text) => shell.out(options.json === true ? `${JSON.stringify(value, null, 2)}\n` : text),
    });
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    outcome.code = interrupted.signal.aborted ? exitCodes.interrupted : exitCodes.failed;
    shell.err(interrupted.signal.aborted ? 'cancelled\n' : `error: ${error.code}: ${error.message}\n`);
  } finally {
    process.removeListener('SIGINT', interrupt);
    client?.close();
  }
}
