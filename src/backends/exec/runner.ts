/** Starts programs of the host: no shell, one owner, a time limit, bounded output. */
import { spawn } from 'node:child_process';
import { throwIfOver } from '../../core/call.ts';
import { asCallError, CallError, errnoOf, oneLine } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { collectOutput } from './bounded-output.ts';
import type { Child, StartChild } from './child.ts';
import { CommandFailed } from './command-failed.ts';
import { directStrategy, type HostStrategy, type Invocation, withPaths } from './host-strategy.ts';
import type { Command, CommandOutput, RunCommand } from './run.ts';
import { searchPath, systemDirectories } from './search-path.ts';
import { type Ending, supervise } from './supervise.ts';
import { openUnnamedFile } from './unnamed-file.ts';

export interface RunnerOptions {
  /** How host programs are reached. Default: directly. */
  readonly strategy?: HostStrategy | undefined;
  /** Files to use for single programs, by name. */
  readonly paths?: Readonly<Record<string, string>> | undefined;
  /** Where programs are looked for besides what `PATH` names. Default: the usual places. */
  readonly searchPath?: readonly string[] | undefined;
  /** Where `PATH` comes from. Default: this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Where programs do their work, if that may be elsewhere. */
  readonly placeOf?: RunCommand['placeOf'];
  /** Another way to start programs, where it is open. */
  readonly startChild?: StartChild | undefined;
  /** Told after every command; for metrics. */
  readonly onCommand?: ((event: CommandEvent) => void) | undefined;
  /** Milliseconds between SIGTERM and SIGKILL. Default: 2000. */
  readonly killGraceMs?: number | undefined;
  /** Milliseconds after SIGKILL until a child that does not die is left behind. Default: 5000. */
  readonly abandonMs?: number | undefined;
}

/** `abandoned`: killed, but the kernel could not end it; it may still be there. */
export const commandOutcomes = ['ok', 'failed', 'missing', 'timeout', 'cancelled', 'abandoned'] as const;
export type CommandOutcome = (typeof commandOutcomes)[number];

export interface CommandEvent {
  readonly program: string;
  readonly outcome: CommandOutcome;
  readonly milliseconds: number;
}

/** Bytes kept of each output stream, unless a command says otherwise. */
const outputLimit = 2 ** 20;

/**
 * Makes the function that runs host programs. It throws FAILED_PRECONDITION when the program is not there, DEADLINE_EXCEEDED when its time
 * limit passes, the signal's reason when the call is over, and {@link CommandFailed} for an exit code that is not accepted. The child and its
 * descendants are gone when the promise settles, except for one that survives SIGKILL.
 */
export function createRunner(options: RunnerOptions = {}): RunCommand {
  const strategy = withPaths(options.strategy ?? directStrategy, options.paths ?? {});
  const path = searchPath((options.env ?? process.env).PATH, options.searchPath ?? systemDirectories).join(':');
  const graces = { killGraceMs: options.killGraceMs ?? 2000, abandonMs: options.abandonMs ?? 5000 };

  const run: RunCommand = async (call, command) => {
    throwIfOver(call.signal);
    const started = performance.now();
    const chosen = strategy(command.program, command.args);
    const invocation = chosen instanceof Promise ? await located(chosen, call, command, options) : chosen;
    const env = { PATH: path, LC_ALL: 'C', ...invocation.env, ...command.env };
    const file = command.outlives && (await openUnnamedFile());
    const plain = command.input === undefined && !command.outlives;
    const child =
      (plain ? options.startChild?.({ ...invocation, env }) : undefined) ??
      start(invocation, command, env, command.outlives ? (file?.descriptor ?? 'ignore') : 'pipe');
    const keepBytes = command.keepBytes ?? outputLimit;
    const stdout = collectOutput(child.stdout, keepBytes, command.takeLine);
    const stderr = collectOutput(child.stderr, keepBytes);
    const { onStderr } = command;
    if (onStderr) child.stderr?.on('data', (chunk: Buffer) => onStderr(chunk.toString('utf8')));
    const ending = await supervise(child, {
      ...graces,
      signal: call.signal,
      timeoutMs: command.timeoutMs,
      overLimit: `\`${command.program}\` did not finish within ${command.timeoutMs / 1000} s and was ended`,
    });
    const said = await file?.finish(keepBytes);
    const complaint = () => said ?? stderr.text();

    const outcome = outcomeOf(ending, command);
    const milliseconds = Math.round(performance.now() - started);
    options.onCommand?.({ program: command.program, outcome, milliseconds });
    report(call.log, { command, by: invocation.file, child, ending, outcome, milliseconds, stderr: complaint });

    if (ending.abandoned) command.onAbandoned?.(exitOf(child));
    if (ending.reason) throw ending.reason;
    if (ending.spawnError) throw notStarted(command.program, invocation.file, path, ending.spawnError);
    const output = { stdout: stdout.text(), stderr: complaint() };
    if (outcome === 'ok') return answer(ending.exitCode as number, output, stdout.truncated() || stderr.truncated());
    throw new CommandFailed({ program: command.program, ...ending, ...output });
  };
  return Object.assign(run, { placeOf: options.placeOf });
}

/** A program that is nowhere counts as missing, as one does that turns out to be when it is started. */
async function located(
  chosen: Promise<Invocation>,
  call: Parameters<RunCommand>[0],
  { program }: Command,
  { onCommand }: RunnerOptions,
): Promise<Invocation> {
  try {
    const invocation = await chosen;
    throwIfOver(call.signal);
    return invocation;
  } catch (error) {
    if (!call.signal.aborted) onCommand?.({ program, outcome: 'missing', milliseconds: 0 });
    throw error;
  }
}

function start(
  invocation: Invocation,
  command: Command,
  env: Record<string, string>,
  output: 'pipe' | 'ignore' | number,
): Child {
  try {
    const child = spawn(invocation.file, invocation.args, {
      // A child must not keep a directory busy that somebody wants to unmount.
      cwd: '/',
      env,
      argv0: invocation.argv0,
      detached: true,
      stdio: [command.input === undefined ? 'ignore' : 'pipe', output, output],
    });
    // A program that ends without reading its input breaks the pipe; its exit says whether that matters.
    child.stdin?.on('error', () => {});
    child.stdin?.end(command.input);
    return child;
  } catch (error) {
    const why = asCallError(error);
    const ours = errnoOf(error) === 'E2BIG' || errnoOf(error) === 'ERR_INVALID_ARG_VALUE';
    throw new CallError(
      ours ? 'INVALID_ARGUMENT' : why.code,
      `\`${command.program}\` cannot be started: ${why.message}`,
      { cause: error },
    );
  }
}

function notStarted(program: string, file: string, path: string, error: Error): CallError {
  const errno = errnoOf(error);
  const where = file.includes('/') ? file : path;
  if (errno === 'ENOENT') {
    return new CallError('FAILED_PRECONDITION', `host program \`${program}\` was not found (searched ${where})`, {
      cause: error,
    });
  }
  if (errno === 'EACCES') {
    return new CallError('FAILED_PRECONDITION', `host program \`${program}\` may not be run (searched ${where})`, {
      cause: error,
    });
  }
  const why = asCallError(error);
  return new CallError(why.code, `\`${program}\` cannot be started: ${why.message}`, { cause: error });
}

function exitOf(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
  });
}

function outcomeOf(ending: Ending, command: Command): CommandOutcome {
  if (ending.abandoned) return 'abandoned';
  if (ending.reason) return ending.reason.code === 'DEADLINE_EXCEEDED' ? 'timeout' : 'cancelled';
  if (ending.spawnError) return 'missing';
  const accepted = command.accept ?? [0];
  if (ending.exitCode === null) return 'failed';
  return accepted === 'any' || accepted.includes(ending.exitCode) ? 'ok' : 'failed';
}

function answer(code: number, output: { stdout: string; stderr: string }, truncated: boolean): CommandOutput {
  return truncated ? { code, ...output, truncated: true } : { code, ...output };
}

interface Finished {
  readonly command: Command;
  /** What was started: the program, or what brings it. */
  readonly by: string;
  readonly child: Child;
  readonly ending: Ending;
  readonly outcome: CommandOutcome;
  readonly milliseconds: number;
  readonly stderr: () => string;
}

function report(log: Logger, finished: Finished): void {
  const { command, child, ending, outcome, milliseconds } = finished;
  if (outcome === 'abandoned') {
    log.warn('a host program survives SIGKILL and was left behind: it waits for storage that does not answer', {
      program: command.program,
      pid: child.pid,
    });
    child.once('exit', () => log.info('a host program that was left behind has ended', { pid: child.pid }));
  }
  if (!log.enabled('debug')) return;
  log.debug('ran', {
    program: command.program,
    args: command.args,
    by: finished.by === command.program ? undefined : finished.by,
    milliseconds,
    outcome,
    exit: ending.exitCode ?? ending.signal ?? undefined,
    stderr: oneLine(finished.stderr()) || undefined,
  });
}
