/** What is wrong with a configuration file, for the person who edits it. */
import { CallError, oneLine } from '../core/errors.ts';

/** A place in a text, both counted from 1. Line 0: the file as a whole. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Problem extends Position {
  /** An error makes the file unusable; a warning does not. */
  readonly severity: 'error' | 'warning';
  readonly file: string;
  /** What it is about, such as `zfs.cli.sudoEnabled`; empty for the whole document. */
  readonly path: string;
  /** One line. Never contains the value of a secret. */
  readonly message: string;
}

/** `file:line:col: error: expected boolean at zfs.cli.sudoEnabled, found "maybe"`, which editors can jump to. */
export function formatProblem(problem: Problem): string {
  return `${place(problem)}: ${problem.severity}: ${problem.message}`;
}

/** A configuration file that cannot be used, with all that was found in it, warnings too, in the order of the file. */
export class ConfigError extends CallError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super('FAILED_PRECONDITION', summary(problems), options);
    this.problems = problems;
  }
}

/** Problems in the order of the file. */
export function inFileOrder(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

function summary(problems: readonly Problem[]): string {
  const errors = problems.filter((problem) => problem.severity === 'error');
  const first = errors[0];
  if (!first) return 'the configuration cannot be used';
  const more = errors.length - 1;
  const tail = more === 0 ? '' : ` (and ${more} more ${more === 1 ? 'problem' : 'problems'})`;
  return `${place(first)}: ${oneLine(first.message)}${tail}`;
}

function place({ file, line, column }: Problem): string {
  return line === 0 ? file : `${file}:${line}:${column}`;
}
