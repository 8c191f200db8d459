/** argv → a command → an exit code. The only file that ends the process. */

import { exitCodes } from './cli/exit-codes.ts';
import { run } from './cli/run.ts';
import { processShell } from './cli/shell.ts';
import { oneLine } from './core/errors.ts';

// A reader that goes away (`| head`, a log collector that restarts) is no reason to fail.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

// A server replaces this pair by listeners of its own (cli/defects.ts).
process.on('uncaughtException', endWithDefect);
process.on('unhandledRejection', endWithDefect);

run(process.argv.slice(2), processShell()).then(end, endWithDefect);

function endWithDefect(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(`internal error: ${oneLine(text)}\n`);
  if (process.env.SWITCHBOARD_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  end(exitCodes.internal);
}

/** Ends the process whatever is still open, but not before what was written has gone out. */
function end(code: number): void {
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}
