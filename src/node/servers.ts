/**
 * Servers that are asked for something, and how they have answered.
 *
 * One that is silent until a time limit passes is left alone for a while: calls that need it fail at once and say so. Then one of them may
 * ask it again, and the first answer brings all back. Other servers notice nothing of it.
 */
import { type CallContext, untilOver } from '../core/call.ts';
import { CallError } from '../core/errors.ts';

/** `mount`: takes as long as mounts do. `look`: is answered at once by a server that is there. */
export type Question = 'mount' | 'look';

export interface Servers {
  /**
   * Runs `work`, which asks `server` (a name that stands for it in messages too) something; DEADLINE_EXCEEDED from it means that the server was
   * silent. Rejects with UNAVAILABLE when it is, at once while it is left alone.
   */
  ask<T>(call: CallContext, server: string, question: Question, work: (hooks: Hooks) => Promise<T>): Promise<T>;
  /** Whether it is being left alone, or would be asked for the first time since it fell silent. */
  isSilent(server: string): boolean;
}

export interface Hooks {
  /** To be told of a child that could not be ended: it still waits for the server. */
  readonly onAbandoned: (ended: Promise<unknown>) => void;
}

export interface ServersOptions {
  /** Milliseconds; by default of this process's clock. */
  readonly now?: (() => number) | undefined;
}

/** Milliseconds. The pauses double from the first to the longest. */
const firstPause = 5000;
const longestPause = 60_000;
/** How many questions of a kind a server is asked at once; the others wait their turn. */
const mostAtOnce = 16;
/** With so many children that could not be ended, a server is not asked for more. */
const mostLeftBehind = 4;
/** Servers that nobody has asked for so many milliseconds are forgotten. */
const memory = 3_600_000;

interface Server {
  readonly name: string;
  readonly running: Record<Question, number>;
  readonly waiting: Waiting[];
  leftBehind: number;
  silence?: Silence | undefined;
}

interface Waiting {
  readonly question: Question;
  readonly start: () => void;
  readonly refuse: (error: CallError) => void;
}

interface Silence {
  readonly since: number;
  readonly why: string;
  readonly pause: number;
  readonly until: number;
  /** Somebody asks it now. */
  trial: boolean;
}

export function createServers({ now = () => performance.now() }: ServersOptions = {}): Servers {
  const servers = new Map<string, Server>();

  function serverNamed(name: string): Server {
    const known = servers.get(name);
    if (known) return known;
    for (const one of servers.values()) {
      if (one.silence && now() - one.silence.until > memory && isIdle(one)) servers.delete(one.name);
    }
    const server: Server = { name, running: { mount: 0, look: 0 }, waiting: [], leftBehind: 0 };
    servers.set(name, server);
    return server;
  }

  function forgetIfWell(server: Server): void {
    if (!server.silence && isIdle(server)) servers.delete(server.name);
  }

  /** Takes one of the server's places, or waits for it. Throws UNAVAILABLE while the server is left alone. */
  async function takeTurn(call: CallContext, server: Server, question: Question): Promise<void> {
    if (server.silence) {
      const refusal = refusalOf(server, server.silence, now());
      if (refusal) throw refusal;
      server.silence.trial = true;
    } else if (server.running[question] >= mostAtOnce) {
      await call.waitingFor(`its turn at ${server.name}`, () => queued(call, server, question));
      return;
    }
    server.running[question]++;
  }

  async function queued(call: CallContext, server: Server, question: Question): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const mine: Waiting = { question, start: resolve, refuse: reject };
    server.waiting.push(mine);
    try {
      await untilOver(call.signal, promise);
    } catch (error) {
      const at = server.waiting.indexOf(mine);
      if (at >= 0) server.waiting.splice(at, 1);
      // The turn had come just when the call ended.
      else if (call.signal.aborted) promise.then(() => endTurn(server, question)).catch(() => {});
      throw error;
    }
  }

  function endTurn(server: Server, question: Question): void {
    server.running[question]--;
    const next = server.waiting.findIndex((one) => one.question === question);
    if (next < 0 || server.silence || server.running[question] >= mostAtOnce) return;
    server.running[question]++;
    server.waiting.splice(next, 1)[0]?.start();
  }

  function fellSilent(call: CallContext, server: Server, why: string): void {
    const { silence } = server;
    // Of several that asked at once, the first has made the pause, which the others must not prolong.
    if (silence && !silence.trial) return;
    const pause = silence ? Math.min(silence.pause * 2, longestPause) : firstPause;
    const since = silence?.since ?? now();
    server.silence = { since, why, pause, until: now() + pause, trial: false };
    call.log.warn('a server does not answer; it is left alone for a while', { server: server.name, why, pause });
    for (const one of server.waiting.splice(0)) one.refuse(silent(server.name, server.silence, now()));
  }

  function answered(call: CallContext, server: Server): void {
    if (!server.silence) return;
    const seconds = Math.round((now() - server.silence.since) / 1000);
    server.silence = undefined;
    call.log.info('a server answers again', { server: server.name, seconds });
  }

  return {
    isSilent: (name) => servers.get(name)?.silence !== undefined,
    async ask(call, name, question, work) {
      const server = serverNamed(name);
      const onAbandoned = (ended: Promise<unknown>) => {
        server.leftBehind++;
        void ended.finally(() => {
          server.leftBehind--;
          forgetIfWell(server);
        });
      };
      try {
        await takeTurn(call, server, question);
        try {
          const result = await work({ onAbandoned });
          answered(call, server);
          return result;
        } catch (error) {
          throw judge(call, server, error);
        } finally {
          endTurn(server, question);
        }
      } finally {
        forgetIfWell(server);
      }
    },
  };

  /** What an error tells about the server, and how the call is to be told. */
  function judge(call: CallContext, server: Server, error: unknown): unknown {
    const code = error instanceof CallError ? error.code : 'INTERNAL';
    const over = call.signal.aborted;
    if (!over && (code === 'DEADLINE_EXCEEDED' || (code === 'UNAVAILABLE' && server.silence))) {
      const { message } = error as CallError;
      fellSilent(call, server, message);
      return new CallError('UNAVAILABLE', message, { cause: error });
    }
    // Who refuses is there. Other errors say nothing about the server.
    if (code === 'PERMISSION_DENIED' || code === 'NOT_FOUND') answered(call, server);
    else if (server.silence) server.silence.trial = false;
    return error;
  }
}

function isIdle({ running, waiting, leftBehind }: Server): boolean {
  return running.mount === 0 && running.look === 0 && waiting.length === 0 && leftBehind === 0;
}

function refusalOf(server: Server, silence: Silence, at: number): CallError | undefined {
  if (at < silence.until || silence.trial) return silent(server.name, silence, at);
  if (server.leftBehind < mostLeftBehind) return undefined;
  const text = `${server.leftBehind} programs that asked it before cannot be ended; it is asked again when one of them has`;
  return new CallError('UNAVAILABLE', `${server.name} does not answer ${sinceText(silence, at)}: ${text}`);
}

function silent(name: string, silence: Silence, at: number): CallError {
  const next = silence.trial ? 'it is being asked just now' : `it is asked again in ${seconds(silence.until - at)}`;
  return new CallError('UNAVAILABLE', `${name} does not answer ${sinceText(silence, at)}; ${next} (${silence.why})`);
}

function sinceText(silence: Silence, at: number): string {
  const began = new Date(Date.now() - (at - silence.since));
  return `since ${began.toISOString().slice(0, 19)}Z (${seconds(at - silence.since)})`;
}

function seconds(ms: number): string {
  return `${Math.max(0, Math.ceil(ms / 1000))} s`;
}

/** One for the process: after a configuration change two planes serve the same volumes for a while. */
export const servers: Servers = createServers();
