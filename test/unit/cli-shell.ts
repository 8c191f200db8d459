/** A shell that keeps what a command writes. */
import { run } from '../../src/cli/run.ts';
import type { Shell } from '../../src/cli/shell.ts';

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command line in this process, as `switchboard <args>` would. */
export async function switchboard(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  let out = '';
  let err = '';
  const shell: Shell = {
    env,
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    outIsTerminal: false,
    errIsTerminal: false,
    columns: 100,
    now: () => Date.parse('2025-11-21T12:00:00Z'),
  };
  const code = await run(args, shell);
  return { code, out, err };
}
