/** Where a command runs: its environment, its output, its clock. Commands take this instead of `process`, so that tests can look on. */

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
  };
}
