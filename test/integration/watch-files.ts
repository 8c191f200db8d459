/** What a server does with files, seen by strace(1), and faults at one certain system call of its. The server itself knows of nothing. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import type { Server } from './server-under-test.ts';

/** Why it cannot be done here, or false. */
export const cannotTrace = spawnSync('strace', ['-V']).error ? 'NOT TESTED: strace is not installed' : false;

/** System calls that change a file system, and those that wait for a disk. */
const steps =
  'mkdir,rename,link,symlink,unlink,rmdir,chmod,chown,fchmod,fchown,lchown,truncate,ftruncate,fsync,fdatasync';

/** A server must be started with this: so all of its file system calls are made by one thread, in order, where they can be counted. */
export const oneFileThread = { UV_THREADPOOL_SIZE: '1' } as const;

export interface Watch {
  /** Lets go of the server, if it lives, and gives what it did. */
  end(): Promise<readonly Step[]>;
}

export interface WatchOptions {
  /** Where strace writes. */
  readonly file: string;
  /** Which system calls are seen, as strace takes them. Default: those that change something. */
  readonly calls?: string;
  /** What happens in place of a step, as strace takes it: `signal=KILL`, `error=EIO`. */
  readonly fault?: { readonly step: Step; readonly does: string };
}

/** A system call: the `number`th of its name, from 1. */
export interface Step {
  readonly name: string;
  readonly number: number;
  /** As strace writes it. */
  readonly line: string;
}

/** Watches the server, which must have been started with {@link oneFileThread} and have served a call, from now on. */
export async function watchFiles(server: Server, { file, calls = steps, fault }: WatchOptions): Promise<Watch> {
  const inject = fault ? [`--inject=${fault.step.name}:${fault.does}:when=${fault.step.number}`] : [];
  const thread = await fileThreadOf(server.pid);
  const strace = spawn('strace', ['-o', file, `--trace=${calls}`, ...inject, '-p', thread], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(strace, 'close');
  let said = '';
  for await (const chunk of strace.stderr.iterator({ destroyOnReturn: false })) {
    said += chunk;
    if (/attached\n/.test(said)) break;
  }
  if (!/attached\n/.test(said)) throw new Error(`strace cannot attach: ${said}`);
  strace.stderr.resume();
  return {
    async end() {
      strace.kill('SIGINT');
      await ended;
      return stepsIn(await readFile(file, 'utf8'));
    },
  };
}

async function fileThreadOf(pid: number): Promise<string> {
  const threads: string[] = [];
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const name = await readFile(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    if (name.startsWith('libuv-worker')) threads.push(thread);
  }
  const [only, ...more] = threads;
  if (only === undefined || more.length > 0) throw new Error(`the server has ${threads.length} file threads`);
  return only;
}

function stepsIn(text: string): readonly Step[] {
  const counts = new Map<string, number>();
  return text.split('\n').flatMap((line) => {
    const name = /^(\w+)\(/.exec(line)?.[1];
    if (name === undefined) return [];
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    return [{ name, number, line }];
  });
}

/** The steps at which a server can be killed with all different results: the first, and each that follows upon a change. */
export function distinctSteps(all: readonly Step[]): readonly Step[] {
  const changes = (step: Step | undefined) => !step || (!/sync$/.test(step.name) && / = 0$/.test(step.line));
  return all.filter((_, index) => changes(all[index - 1]));
}
