import type { Shell } from './shell.ts';
import { UsageError } from './usage-error.ts';

export interface Asking {
  readonly yes?: boolean;
  readonly json?: boolean;
}

export interface Question {
  /** What is asked; `[y/N]` follows. */
  readonly text: string;
  /** What is told, and what may be done about it, where nobody can be asked. */
  readonly unasked: readonly [problem: string, hint: string];
}

/** Whether somebody says yes, or has said so by `--yes`. Throws UsageError where nobody can be asked. */
export async function isWanted(shell: Shell, { yes, json }: Asking, { text, unasked }: Question): Promise<boolean> {
  if (yes) return true;
  if (json || shell.ask === undefined) throw new UsageError(...unasked);
  const answer = await shell.ask(`${text} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}
