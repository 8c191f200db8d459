import { CallError, oneLine, type StatusCode } from '../../core/errors.ts';

export interface Failure {
  readonly program: string;
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program ran and did not succeed. Callers that know the program read the exit code and give the failure a better code and text. */
export class CommandFailed extends CallError {
  readonly program: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** What it said, folded to one line: standard error, or standard output when that is empty. */
  readonly stderr: string;

  constructor(failure: Failure) {
    const said = oneLine(failure.stderr) || oneLine(failure.stdout);
    const how = failure.signal === null ? `exit ${failure.exitCode}` : `ended by ${failure.signal}`;
    super(codeOf(said), `\`${failure.program}\` failed (${how})${said ? `: ${said}` : ''}`);
    this.program = failure.program;
    this.exitCode = failure.exitCode;
    this.signal = failure.signal;
    this.stderr = said;
  }
}

function codeOf(said: string): StatusCode {
  return /no space left on device|disk quota exceeded/i.test(said) ? 'RESOURCE_EXHAUSTED' : 'INTERNAL';
}
