import type { Command, RunCommand } from '../../src/backends/exec/run.ts';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { reasonOf } from '../../src/core/call.ts';

/** Lets a program of the host wait until the test says so. It ends as any program does when its call is over. */
export function held(program: string, subcommand?: string) {
  const real = createRunner();
  const waiting: { readonly command: Command; go(): void; fail(error: Error): void }[] = [];
  let wake = () => {};
  const run: RunCommand = async (call, command) => {
    if (command.program !== program || (subcommand !== undefined && command.args[0] !== subcommand))
      return await real(call, command);
    await new Promise<void>((resolve, reject) => {
      call.signal.addEventListener('abort', () => reject(reasonOf(call.signal)));
      waiting.push({ command, go: resolve, fail: reject });
      wake();
    });
    return await real(call, command);
  };
  /** Resolves when this many have been started. */
  const started = async (count: number) => {
    while (waiting.length < count) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { run, waiting, started };
}
