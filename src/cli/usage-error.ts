/** The command line is wrong: shown as `error: <message>` with the hint below it, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

/** Something the command needs is not so: shown as `error: <message>` with the hint below it, exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}
