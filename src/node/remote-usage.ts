import { CommandFailed } from '../backends/exec/command-failed.ts';
import type { CallContext } from '../core/call.ts';
import { CallError, oneLine } from '../core/errors.ts';
import type { Mount } from './mount-table.ts';
import type { NodeTools } from './tools.ts';

/** What statfs(2) tells of a file system. Sizes are in blocks of `bsize` bytes. */
export interface FileSystemUsage {
  readonly bsize: number;
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
  readonly files: number;
  readonly ffree: number;
}

/** A server that is there answers at once; a call has more to do than to wait for one that is not. */
const patience = 5000;

/**
 * The usage of a mount that may hang, asked by a child. It also proves that the server is there: unlike a file's attributes, the usage comes
 * from no cache. Throws UNAVAILABLE when the server answers with an error or not at all.
 */
export async function remoteUsage(call: CallContext, tools: NodeTools, mount: Mount): Promise<FileSystemUsage> {
  const stdout = await askServer(call, tools, mount);
  const numbers = stdout.trim().split(' ').map(Number);
  if (numbers.length !== 6 || numbers.some(Number.isNaN)) {
    throw new CallError('INTERNAL', `\`stat -f\` gave an unexpected answer: ${oneLine(stdout, 100)}`);
  }
  const [bsize, blocks, bfree, bavail, files, ffree] = numbers as [number, number, number, number, number, number];
  return { bsize, blocks, bfree, bavail, files, ffree };
}

async function askServer(call: CallContext, tools: NodeTools, mount: Mount): Promise<string> {
  try {
    const { stdout } = await tools.run(call, {
      program: 'stat',
      args: ['-f', '-c', '%S %b %f %a %c %d', '--', mount.mountPoint],
      timeoutMs: Math.min(tools.limits.mount, patience),
    });
    return stdout;
  } catch (error) {
    if (call.signal.aborted) throw error;
    const late = error instanceof CallError && error.code === 'DEADLINE_EXCEEDED';
    if (!late && !(error instanceof CommandFailed)) throw error;
    const why = error instanceof CommandFailed ? error.stderr : 'it does not answer';
    throw new CallError('UNAVAILABLE', `${mount.source} is out of reach: ${why}`, { cause: error });
  }
}
