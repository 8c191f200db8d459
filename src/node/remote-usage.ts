import { CommandFailed } from '../backends/exec/command-failed.ts';
import type { CallContext } from '../core/call.ts';
import { CallError, oneLine } from '../core/errors.ts';
import type { Mount } from './mount-table.ts';
import { forgetAlive, noteAlive } from './proven-alive.ts';
import { type Hooks, servers } from './servers.ts';
import { serverNameOf, serverOf } from './share-source.ts';
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

/** `dead`: why the mount will not work any more, although its server may. */
export type RemoteAnswer = { readonly usage: FileSystemUsage } | { readonly dead: string };

/** A server that is there answers at once; a call has more to do than to wait for one that is not. */
const patience = 5000;

/** Answers that speak of the way to the server, not of the mount, which works again when the server is back. */
const wayward =
  /timed out|not responding|host is down|no route|unreachable|temporarily unavailable|refused|reset by peer/i;

/**
 * Asks the server of a mount that may hang for its usage, by a child. That proves that the server is there: unlike a file's attributes, the
 * usage comes from no cache. Throws UNAVAILABLE when the server does not answer, at once where that is known.
 */
export async function askRemote(call: CallContext, tools: NodeTools, mount: Mount): Promise<RemoteAnswer> {
  return await servers.ask(call, serverNameOf(mount), 'look', (hooks) => look(call, tools, mount, hooks));
}

/** The usage alone. Throws UNAVAILABLE for a dead mount too. */
export async function remoteUsage(call: CallContext, tools: NodeTools, mount: Mount): Promise<FileSystemUsage> {
  const answer = await askRemote(call, tools, mount);
  if ('usage' in answer) return answer.usage;
  throw new CallError('UNAVAILABLE', `${mount.source} is out of reach: ${answer.dead}`);
}

async function look(call: CallContext, tools: NodeTools, mount: Mount, { onAbandoned }: Hooks): Promise<RemoteAnswer> {
  const timeoutMs = Math.min(tools.limits.mount, patience);
  try {
    const { stdout } = await tools.run(call, {
      program: 'stat',
      args: ['-f', '-c', '%S %b %f %a %c %d', '--', mount.mountPoint],
      timeoutMs,
      onAbandoned,
    });
    const usage = parse(stdout);
    noteAlive(mount);
    return { usage };
  } catch (error) {
    if (call.signal.aborted) throw error;
    forgetAlive(mount);
    if (error instanceof CallError && error.code === 'DEADLINE_EXCEEDED') {
      throw new CallError('DEADLINE_EXCEEDED', `${mount.source} is out of reach: it does not answer`, { cause: error });
    }
    if (!(error instanceof CommandFailed)) throw error;
    const isLate = /timed out|not responding/i.test(error.stderr);
    if (isOfTheWay(mount, error.stderr)) {
      const text = `${mount.source} is out of reach: ${error.stderr}`;
      throw new CallError(isLate ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE', text, { cause: error });
    }
    return { dead: error.stderr };
  }
}

/** A mount of a share that gives up (`soft`) tells a silent server as an error of input or output. */
function isOfTheWay(mount: Mount, said: string): boolean {
  return wayward.test(said) || (serverOf(mount) !== undefined && /input\/output error/i.test(said));
}

function parse(stdout: string): FileSystemUsage {
  const numbers = stdout.trim().split(' ').map(Number);
  if (numbers.length !== 6 || numbers.some(Number.isNaN)) {
    throw new CallError('INTERNAL', `\`stat -f\` gave an unexpected answer: ${oneLine(stdout, 100)}`);
  }
  const [bsize, blocks, bfree, bavail, files, ffree] = numbers as [number, number, number, number, number, number];
  return { bsize, blocks, bfree, bavail, files, ffree };
}
