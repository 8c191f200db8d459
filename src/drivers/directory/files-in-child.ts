/**
 * Files on a share of a server, worked on by a child process: when the server does not answer, only the child hangs.
 *
 * It is started by the first request and ends when there was none for some minutes. A child that says nothing for too long is killed, and a new one
 * first has to prove that the share answers. A process that waits for a dead server may survive being killed until the server is back; there
 * are never more than a few of those.
 */
import { throwIfOver } from '../../core/call.ts';
import { CallError, errnoOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { within } from '../../core/within.ts';
import type { Files } from './files.ts';
import { type FilesChild, startFilesChild } from './files-child.ts';
import type { FilesWork } from './files-protocol.ts';
import { createOutage } from './outage.ts';

export interface FilesInChildOptions {
  /** A path on the share that is there whenever the share is. */
  readonly base: string;
  /** The share, for people. */
  readonly title: string;
  readonly log: Logger;
  /** Milliseconds without a sign of life from the child after which it counts as hanging. */
  readonly limitMs: number;
  /** Milliseconds for the first answer after an outage. */
  readonly probeMs?: number | undefined;
  /** Milliseconds that a child without work is kept. */
  readonly idleMs?: number | undefined;
  /** Told when the share answers that this machine's view of it is stale. */
  readonly onStale?: (() => void) | undefined;
  /** Default: a child of this process, and its clock. */
  readonly start?: typeof startFilesChild | undefined;
  readonly clock?: (() => number) | undefined;
}

export interface FilesInChild extends Files {
  /** The id of the process at work, if there is one. */
  readonly pid: number | undefined;
  /** Keeps a folder open as long as the child lives, so that nobody unmounts what it is on. */
  hold(path: string): Promise<void>;
  /** Ends the child. Requests in flight fail. */
  close(): Promise<void>;
}

/** Children that may survive being killed, per connection. */
const mostStuck = 3;

export function createFilesInChild(options: FilesInChildOptions): FilesInChild {
  const { base, title, log, limitMs, onStale } = options;
  const { probeMs = Math.min(5000, limitMs), idleMs = 5 * 60_000, start: startChild = startFilesChild } = options;
  const outage = createOutage(title, options.clock);
  const stuck = new Set<FilesChild>();
  let current: FilesChild | undefined;
  let probe: Promise<FilesChild> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let closed = false;

  function start(): FilesChild {
    const child = startChild({ title, onSilent: giveUp });
    void child.ended.then((how) => {
      if (stuck.delete(child)) return log.info('a process that hung on a share has ended', { pid: child.pid, how });
      if (current === child) current = undefined;
      if (!child.answered && !closed) outage.begin(`no process can be started for it (${how})`);
    });
    return child;
  }

  function giveUp(child: FilesChild): void {
    if (current === child) current = undefined;
    stuck.add(child);
    outage.begin('it does not answer');
    log.warn('a share does not answer: the process that hangs on it was killed', { share: title, pid: child.pid });
  }

  async function ready(): Promise<FilesChild> {
    if (closed) throw new CallError('UNAVAILABLE', 'the connection is being closed; try again');
    if (!outage.lasts) {
      current ??= start();
      return current;
    }
    outage.throwIfPausing();
    probe ??= tryAgain().finally(() => {
      probe = undefined;
    });
    return await probe;
  }

  async function tryAgain(): Promise<FilesChild> {
    if (stuck.size >= mostStuck) {
      outage.begin(`${stuck.size} processes hang on it and cannot be ended`);
      outage.throwIfPausing();
    }
    const child = start();
    try {
      await child.ask('space', [base], probeMs);
    } catch (error) {
      if (!child.answered) throw error;
      // An error of the share is an answer, too.
    }
    outage.end();
    current = child;
    log.info('a share answers again', { share: title });
    return child;
  }

  async function ask(name: FilesWork, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    const child = await ready();
    clearTimeout(idle);
    try {
      return await child.ask(name, args, limitMs, signal);
    } catch (error) {
      if (errnoOf(error) === 'ESTALE') onStale?.();
      throw error;
    } finally {
      if (child === current && child.pending === 0) idle = setTimeout(rest, idleMs).unref();
    }
  }

  function rest(): void {
    current?.end();
    current = undefined;
  }

  return {
    ...filesThrough(ask),
    get pid() {
      return current?.pid;
    },
    hold: async (path) => void (await ask('hold', [path])),
    async close() {
      closed = true;
      clearTimeout(idle);
      const children = [...(current ? [current] : []), ...stuck];
      for (const child of children) child.kill();
      await within(1000, Promise.all(children.map((child) => child.ended)));
      for (const child of children) child.unref();
    },
  };
}

type Ask = (name: FilesWork, args: readonly unknown[], signal?: AbortSignal) => Promise<unknown>;

/** Each of the calls as a request. What comes back is what the same function of localFiles gives, with dates as numbers. */
function filesThrough(ask: Ask): Files {
  const through =
    <Name extends keyof Files>(name: Name) =>
    (...args: Parameters<Files[Name]>) =>
      ask(name, args) as ReturnType<Files[Name]>;
  const date = (milliseconds: unknown) => new Date(Number(milliseconds));
  return {
    kindOf: through('kindOf'),
    realPath: through('realPath'),
    bornAt: async (path) => date(await ask('bornAt', [path])),
    ensureFolder: through('ensureFolder'),
    makeFolder: through('makeFolder'),
    list: through('list'),
    read: through('read'),
    writeNew: through('writeNew'),
    publish: through('publish'),
    move: through('move'),
    remove: through('remove'),
    async removeTree(path, shelter, signal) {
      throwIfOver(signal);
      await ask('removeTree', [path, shelter], signal).catch((error: unknown) => {
        // The child knows that it is over, but not why.
        throwIfOver(signal);
        throw error;
      });
    },
    sync: through('sync'),
    touch: through('touch'),
    async touchedAt(path) {
      const milliseconds = await ask('touchedAt', [path]);
      return milliseconds === undefined ? undefined : date(milliseconds);
    },
    setMode: through('setMode'),
    setOwner: through('setOwner'),
    space: through('space'),
  };
}
