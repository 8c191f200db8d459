/** The place of one connection name: its present driver, the drivers that are on their way out, and what is wrong with its file. */
import { ConfigError } from '../config/problem.ts';
import { asCallError, CallError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { ActiveOperation, Operations } from '../core/operations.ts';
import { createOperations } from '../core/operations.ts';
import { coalesced } from './coalesced.ts';
import type { Connection } from './connection.ts';
import { type FileLook, type FileVersion, lookAtFile } from './connection-file.ts';
import type { SharedDriver } from './shared-driver.ts';
import { shareDriver } from './shared-driver.ts';

export interface SlotStatus {
  /** `ok`: the file is in use as it is; `broken`: it is not, see `problem`; `idle`: not loaded now; `absent`: there is no such file. */
  readonly state: 'ok' | 'broken' | 'idle' | 'absent';
  /** Why the file cannot be used. */
  readonly problem?: string | undefined;
  /** The `driver:` of the present driver; of the last good file when the present one is broken. */
  readonly driver?: string | undefined;
  /** When the present driver was made, in milliseconds since the epoch. */
  readonly loadedAt?: number | undefined;
  /** Drivers of earlier files that are still in use. */
  readonly retiring: number;
  readonly operations: readonly ActiveOperation[];
}

export interface Slot {
  /** The connection as its file is now; undefined when there is none. Throws FAILED_PRECONDITION for a file that was never good. */
  acquire(): Promise<{ readonly connection: Connection; release(): void } | undefined>;
  /** Brings the status up to date with the file, without keeping a driver that nobody uses. Never rejects. */
  look(): Promise<void>;
  readonly operations: Operations;
  status(): SlotStatus;
  /** True when nothing is lost by dropping this slot. */
  forgettable(): boolean;
  /** Closes all drivers; takes a bounded time and never rejects. */
  close(): Promise<void>;
}

export interface SlotOptions {
  readonly name: string;
  readonly file: string;
  readonly cacheTimeoutMinutes: number;
  readonly closeLimitMs: number;
  readonly log: Logger;
  readonly make: (name: string, text: string, file: string) => Promise<Connection>;
  readonly joined: (connection: Connection, operations: Operations) => Connection;
}

interface Loaded {
  readonly shared: SharedDriver;
  readonly connection: Connection;
  readonly loadedAt: number;
}

/** Timers cannot be set for longer; that many minutes (24 days) are as good as for ever. */
const maxTimerMs = 2 ** 31 - 1;

export function createSlot(options: SlotOptions): Slot {
  const { name, file } = options;
  const log = options.log.with({ connection: name });
  const operations = createOperations();
  const open = new Set<SharedDriver>();
  let waiting = 0;
  let closed = false;
  let seen: FileVersion | undefined;
  let present: Loaded | undefined;
  let problem: CallError | undefined;
  let eviction: NodeJS.Timeout | undefined;

  async function load(text: string): Promise<Loaded> {
    const made = await options.make(name, text, file);
    const shared = shareDriver(made.driver, {
      log,
      closeLimitMs: options.closeLimitMs,
      onIdle: evictLater,
      onClosed: () => open.delete(shared),
    });
    open.add(shared);
    if (closed) void shared.close();
    const connection = options.joined({ ...made, driver: shared.driver }, operations);
    return { shared, connection, loadedAt: Date.now() };
  }

  /** Brings `present` and `problem` up to date with the file. */
  const refresh = coalesced(async (): Promise<'there' | 'absent'> => {
    const look = await lookAgain().catch(asCallError);
    if (look instanceof CallError) {
      seen = undefined;
      noteProblem(look);
      return 'there';
    }
    if (look.state === 'missing') {
      seen = undefined;
      problem = undefined;
      replaceBy(undefined);
      return 'absent';
    }
    seen = look.version;
    if (look.state === 'changed') await reload(look.text);
    return 'there';
  });

  async function lookAgain(): Promise<FileLook> {
    // With nothing to keep, even an unchanged file has to be loaded.
    const look = await lookAtFile(file, present || problem ? seen : undefined);
    // A link can be switched, and its old target removed, while we walk along it.
    return look.state === 'missing' && present ? lookAtFile(file, seen) : look;
  }

  async function reload(text: string): Promise<void> {
    try {
      const loaded = await load(text);
      if (problem || present) log.info('the connection file changed and is in use', { file });
      problem = undefined;
      replaceBy(loaded);
    } catch (error) {
      // What is wrong with the text stays wrong; anything else may be right the next time.
      if (!(error instanceof ConfigError)) seen = undefined;
      noteProblem(asCallError(error));
    }
  }

  function noteProblem(found: CallError): void {
    if (problem?.message === found.message) return;
    problem = found;
    const kept = present ? 'the last good version stays in use' : 'its calls fail until that is repaired';
    log.warn(`the connection file cannot be used: ${found.message}; ${kept}`, { file });
  }

  function replaceBy(loaded: Loaded | undefined): void {
    clearTimeout(eviction);
    present?.shared.retire();
    present = loaded;
  }

  function evictLater(): void {
    const ms = options.cacheTimeoutMinutes * 60_000;
    clearTimeout(eviction);
    if (ms === 0) replaceBy(undefined);
    if (ms <= 0 || ms > maxTimerMs || closed) return;
    eviction = setTimeout(() => {
      // The last good driver of a broken file could not be made again.
      if (problem || !present || present.shared.users() > 0) return;
      replaceBy(undefined);
      log.debug('the connection was not used for a while and is closed', { minutes: options.cacheTimeoutMinutes });
    }, ms).unref();
  }

  async function acquire() {
    waiting++;
    try {
      // A driver can be replaced or closed between the look at the file and our hold on it: look again then.
      while (!closed) {
        if ((await refresh()) === 'absent') return undefined;
        if (!present && problem) throw problem;
        const release = present?.shared.hold();
        if (!present || !release) continue;
        clearTimeout(eviction);
        const { connection } = present;
        return { connection, release };
      }
      throw new CallError('UNAVAILABLE', 'the plugin is stopping');
    } finally {
      waiting--;
    }
  }

  async function look(): Promise<void> {
    const isIdle = seen && !present && !problem;
    if (closed || (isIdle && (await isUnchanged(file, seen)))) return;
    const before = present;
    await refresh();
    if (present && present !== before && present.shared.users() === 0) evictLater();
  }

  return {
    acquire,
    look,
    operations,
    status() {
      const state = problem ? 'broken' : present ? 'ok' : seen ? 'idle' : 'absent';
      return {
        state,
        problem: problem?.message,
        driver: present?.connection.driver.name,
        loadedAt: present?.loadedAt,
        retiring: [...open].filter((one) => one !== present?.shared).length,
        operations: [...operations.active(), ...[...open].flatMap((one) => one.driver.background?.() ?? [])],
      };
    },
    forgettable: () => waiting === 0 && open.size === 0 && !seen && !problem && operations.active().length === 0,
    async close() {
      closed = true;
      clearTimeout(eviction);
      await Promise.all([...open].map((one) => one.close()));
    },
  };
}

async function isUnchanged(file: string, seen: FileVersion | undefined): Promise<boolean> {
  const look = await lookAtFile(file, seen).catch(asCallError);
  return !(look instanceof CallError) && look.state === 'same';
}
