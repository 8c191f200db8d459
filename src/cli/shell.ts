/** Where a command runs: its environment, its output, its clock. Commands take this instead of `process`, so that tests can look on. */
import { isatty } from 'node:tty';

export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results: standard output. */
  out(text: string): void;
  /** Everything that is not the result: standard error. */
  err(text: string): void;
  /** A person reads standard output. */
  readonly outIsTerminal: boolean;
  /** A person reads standard error. */
  readonly errIsTerminal: boolean;
  /** Characters that fit on a line. */
  readonly columns: number;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Asks a person, who answers with a line; empty at the end of input. Undefined where nobody is. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
}

export function processShell(): Shell {
  return {
    env: process.env,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    outIsTerminal: process.stdout.isTTY === true,
    errIsTerminal: process.stderr.isTTY === true,
    columns: Math.min(process.stdout.columns ?? 100, 120),
    now: Date.now,
    ask: isatty(0) && isatty(2) ? ask : undefined,
  };
}

/** On standard error, so that results can be kept while a person is asked. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = new Promise<string>((resolve) => {
    terminal.once('close', () => resolve(''));
    terminal.question(question, resolve);
  });
  return await answer.finally(() => terminal.close());
}
