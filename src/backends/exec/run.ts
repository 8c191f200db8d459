/** Running programs of the host: one bounded, owned child process a command, never a shell. */
import type { CallContext } from '../../core/call.ts';

export interface Command {
  /** A program's name, found on the host by the host strategy: `mount`, `mkfs.ext4`. */
  readonly program: string;
  /** The argument vector. Never contains a secret: secrets go by `input` or `env`. */
  readonly args: readonly string[];
  /** The child and its descendants are killed after this many milliseconds; never, when it is Infinity. */
  readonly timeoutMs: number;
  /**
   * It works on to its end though this process is killed. A program that writes to a pipe that nobody reads any more is ended, so what it says goes
   * to a file without a name, and is given as standard error when it has ended.
   */
  readonly outlives?: true | undefined;
  /** Written to standard input, which is then closed; without it the input is empty. */
  readonly input?: string | undefined;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Exit codes that are an answer, not a failure. Default: 0 only. */
  readonly accept?: readonly number[] | 'any' | undefined;
  /** Told when the child had to be left behind because not even SIGKILL ends it: it waits for storage. `ended` resolves when it has ended. */
  readonly onAbandoned?: ((ended: Promise<unknown>) => void) | undefined;
  /** Told each line of standard output as it comes, without its end. True: the line was used up and is not kept. */
  readonly takeLine?: ((line: string) => boolean) | undefined;
  /** Bytes kept of each output stream. Default: 1 MiB. */
  readonly keepBytes?: number | undefined;
  /** Told of each piece of standard error as it comes. */
  readonly onStderr?: ((text: string) => void) | undefined;
}

export interface CommandOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Present when the program wrote more than is kept: whoever decides by a list must not act on half of it. */
  readonly truncated?: true | undefined;
}

/** Runs a command to its end. */
export interface RunCommand {
  (call: Pick<CallContext, 'signal' | 'log'>, command: Command): Promise<CommandOutput>;
  /** Where a program does its work, for the files that it reads and writes. Absent: where this process is. Never throws. */
  readonly placeOf?: ((program: string) => Promise<ProgramPlace>) | undefined;
}

export interface ProgramPlace {
  /** Its root directory as this process sees it. */
  readonly root: string;
  /** Whether it shares the network of this process. */
  readonly ownNetwork: boolean;
}
