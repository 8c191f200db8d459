import type { RunCommand } from '../exec/run.ts';
import { type Shell, shellOutputLimit } from './shell.ts';

/** The longest delay that a timer takes: 24 days. */
const longest = 2 ** 31 - 1;

/** Scripts on this host: for drivers whose storage is here, through the host strategy. */
export function createLocalShell(run: RunCommand): Shell {
  return {
    host: 'this host',
    async run(call, { text, title, timeoutMs, onStderr }) {
      const command = {
        program: 'sh',
        args: ['-s'],
        input: text,
        timeoutMs: timeoutMs ?? longest,
        keepBytes: shellOutputLimit,
        onStderr,
        accept: 'any' as const,
      };
      const output = await call.waitingFor(`\`${title}\``, () => run(call, command));
      return { ...output, signal: null, truncated: output.truncated ?? false };
    },
    async close() {},
  };
}
