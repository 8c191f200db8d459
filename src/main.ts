/** argv → a command → an exit code. The only file that ends the process. */

import { exitCodes } from './cli/exit-codes.ts';
import { run } from './cli/run.ts';
import { processShell } from './cli/shell.ts';
import { oneLine } from './core/errors.ts';

// A reader that goes away (`| head`, a log collector that restarts) is no reason to fail.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

// Warnings of Node.js and its libraries are for developers. A server logs them (cli/defects.ts).
process.removeAllListeners('warning');

// A server replaces this pair by listeners of its own (cli/defects.ts).
process.on('uncaughtException', endAtOnce);
process.on('unhandledRejection', endAtOnce);

run(process.argv.slice(2), processShell()).then(end, (error: unknown) => {
  report(error);
  end(exitCodes.internal);
});

/** The command that still runs must not go on: nothing is waited for. */
function endAtOnce(error: unknown): void {
  report(error);
  process.exit(exitCodes.internal);
}

function report(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(`internal error: ${oneLine(text)}\n`);
  if (process.env.SWITCHBOARD_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`);
}

/** Ends the process whatever is still open, but not before what was written has gone out. */
function end(code: number): void {
  process.stdout.write('', () => process.stderr.write('', () => exit(code)));
}

/** Milliseconds for reading and writing that is still going on. */
const graceMs = 2000;

/**
 * An orderly exit waits for the threads that read and write files. One of them may be stuck for ever on storage that does not answer: then the
 * process ends as an unhandled SIGTERM would end it, which supervisors take for a clean end too.
 */
function exit(code: number, deadline = performance.now() + graceMs): void {
  if (!process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))) process.exit(code);
  if (performance.now() < deadline) {
    setTimeout(exit, 20, code, deadline);
    return;
  }
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}
