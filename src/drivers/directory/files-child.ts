/** A child process that works with files, so that only it hangs when they are on a server that does not answer. */
import { type ChildProcess, spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { collectOutput } from '../../backends/exec/bounded-output.ts';
import { ownProgram } from '../../backends/exec/own-program.ts';
import { asCallError, CallError, oneLine } from '../../core/errors.ts';
import {
  type FilesReply,
  type FilesRequest,
  type FilesWork,
  filesWorkerCommand,
  fromWire,
  lineReader,
} from './files-protocol.ts';

export interface FilesChild {
  readonly pid: number | undefined;
  /** Requests that it has not answered. */
  readonly pending: number;
  /** Whether it has ever answered. */
  readonly answered: boolean;
  /**
   * Has it do something. Rejects with UNAVAILABLE when it ends before that is done, or when it says nothing for `limitMs` milliseconds: then
   * it is killed.
   */
  ask(name: FilesWork, args: readonly unknown[], limitMs: number, signal?: AbortSignal): Promise<unknown>;
  /** Lets it end by itself. */
  end(): void;
  kill(): void;
  /** How it ended, for people. Never rejects. */
  readonly ended: Promise<string>;
  /** It is no reason to stay for this process. */
  unref(): void;
}

export interface FilesChildOptions {
  /** What it works on, for people. */
  readonly title: string;
  /** Called before the requests fail that it did not answer in time. */
  readonly onSilent: (child: FilesChild) => void;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
  readonly done: () => void;
}

export function startFilesChild({ title, onSilent }: FilesChildOptions): FilesChild {
  const { file, args } = ownProgram([filesWorkerCommand]);
  const child: ChildProcess = spawn(file, args, {
    argv0: process.argv0,
    // It must not keep busy what somebody wants to unmount, nor get the signals of a terminal.
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const stderr = collectOutput(child.stderr, 4096);
  const pending = new Map<number, Pending>();
  let lastId = 0;
  let answered = false;

  const send = (request: FilesRequest) => child.stdin?.write(`${JSON.stringify(request)}\n`);
  const failAll = (why: () => CallError) => {
    for (const one of [...pending.values()]) {
      one.done();
      one.reject(why());
    }
  };
  const take = (reply: FilesReply) => {
    answered = true;
    const one = pending.get(reply.id);
    if (reply.goesOn) one?.timer.refresh();
    if (!one || reply.goesOn) return;
    one.done();
    if (reply.failed) one.reject(fromWire(reply.failed));
    else one.resolve(reply.is);
  };
  // Without pipes there is no child; a pipe breaks when it has ended. Both are told below.
  child.stdin?.on('error', () => {});
  child.stdout?.on('error', () => {});
  child.stdout?.on(
    'data',
    lineReader(new StringDecoder('utf8'), (line) => take(JSON.parse(line))),
  );

  const ended = endOf(child).then((how) => {
    const said = oneLine(stderr.text(), 200);
    const text = said === '' ? how : `${how}: ${said}`;
    failAll(() => new CallError('UNAVAILABLE', `the process that works on ${title} for this one ended (${text})`));
    return text;
  });

  const self: FilesChild = {
    pid: child.pid,
    get pending() {
      return pending.size;
    },
    get answered() {
      return answered;
    },
    ask(name, withArgs, limitMs, signal) {
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        const stop = () => send({ stop: id });
        const timer = setTimeout(() => {
          child.kill('SIGKILL');
          onSilent(self);
          failAll(() => new CallError('UNAVAILABLE', `${title} did not answer within ${limitMs / 1000} s`));
        }, limitMs);
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', stop);
          pending.delete(id);
        };
        pending.set(id, { resolve, reject, timer, done });
        send({ id, do: name, with: withArgs });
        if (signal?.aborted) stop();
        else signal?.addEventListener('abort', stop, { once: true });
      });
    },
    end: () => void child.stdin?.end(),
    kill: () => void child.kill('SIGKILL'),
    ended,
    unref: () => child.unref(),
  };
  return self;
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(asCallError(error).message);
    });
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    // What survives it may keep its pipes open.
    child.once('exit', (code, signal) => setTimeout(resolve, 200, signal ?? `exit code ${code}`).unref());
  });
}
