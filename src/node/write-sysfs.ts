import { access } from 'node:fs/promises';
import { CommandFailed } from '../backends/exec/command-failed.ts';
import type { CallContext } from '../core/call.ts';
import { CallError, errnoOf } from '../core/errors.ts';
import type { NodeTools } from './tools.ts';

/**
 * Writes to an attribute of sysfs that makes the kernel do something with a device: by a child, for a device that is dead can hold a writer for minutes.
 * False: there is no such attribute any more.
 */
export async function writeSysfs(
  call: CallContext,
  tools: NodeTools,
  path: string,
  value: string,
  timeoutMs: number,
): Promise<boolean> {
  try {
    await call.waitingFor(`the kernel (${path})`, () =>
      tools.run(call, { program: 'tee', args: [path], input: value, timeoutMs }),
    );
    return true;
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    if (errnoOf(await access(path).catch((missing: unknown) => missing)) === 'ENOENT') return false;
    if (!/read-only file system|permission denied/i.test(error.stderr)) throw error;
    throw new CallError(
      'FAILED_PRECONDITION',
      `${path} cannot be written: this process needs sysfs writable and the capability CAP_SYS_ADMIN (a privileged container)`,
      { cause: error },
    );
  }
}
