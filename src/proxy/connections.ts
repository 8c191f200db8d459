/**
 * The connections: a folder of files, each of them a driver that exists while it is used.
 *
 * A file is found and looked at on every use. When it changed, a new driver takes over and the old one is closed after the calls on it have
 * ended; when it is broken, the last good driver stays; when it is gone, so is the connection. Nothing that goes wrong with one connection
 * reaches another.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallContext } from '../core/call.ts';
import { detachedContext, untilOver } from '../core/call.ts';
import { asCallError, CallError, errnoOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Operations } from '../core/operations.ts';
import { within } from '../core/within.ts';
import type { Connection } from './connection.ts';
import { namingConnection } from './connection-error.ts';
import { compareNames, connectionFileEnding, connectionNameOf, isConnectionName } from './connection-name.ts';
import { createSlot, type Slot, type SlotStatus } from './connection-slot.ts';
import { shown } from './handle.ts';
import { type Lease, useLease } from './lease.ts';

export type ConnectionStatus = SlotStatus & { readonly name: string; readonly file: string };

export interface Connections {
  /** The connection as its file is now, or undefined when there is no such file. Throws FAILED_PRECONDITION for a file that was never good. */
  find(call: CallContext, name: string): Promise<Lease | undefined>;
  /** Runs `work` on the connection; every error says which connection it is. FAILED_PRECONDITION when there is no such file. */
  use<T>(call: CallContext, name: string, work: (connection: Connection) => Promise<T>): Promise<T>;
  /** All connections there are files of, in the order of their names. Throws FAILED_PRECONDITION when the folder cannot be read. */
  names(): Promise<readonly string[]>;
  /** Loads all connections, so that what is wrong with a file is logged now and not when its first volume is asked for. Never rejects. */
  loadAll(): Promise<void>;
  /** Looks at all files without using them, so that {@link status} is up to date. Never rejects. */
  look(): Promise<void>;
  /** The connections that were used or looked at since the start and still have a file or a driver. */
  status(): readonly ConnectionStatus[];
  /** Ends all operations and closes all drivers. Takes a bounded time and never rejects. */
  close(): Promise<void>;
}

export interface ConnectionsOptions {
  readonly folder: string;
  /** Minutes a driver is kept after its last use. 0: every use makes its own. -1: for ever. */
  readonly cacheTimeoutMinutes: number;
  readonly log: Logger;
  /** Makes the connection from its file's text. Throws CallError for text or settings that cannot be used. */
  readonly make: (name: string, text: string, file: string) => Promise<Connection>;
  /** Joins equal requests; the operations belong to the connection's name and outlive its drivers. */
  readonly joined: (connection: Connection, operations: Operations) => Connection;
}

/** Milliseconds that ending what still runs, and then closing a driver, may take. */
const limits = { stop: 5000, close: 10_000 } as const;

export function createConnections(options: ConnectionsOptions): Connections {
  const { folder, log } = options;
  const slots = new Map<string, Slot>();
  const fileOf = (name: string) => join(folder, name + connectionFileEnding);
  let closing: Promise<void> | undefined;

  function slotOf(name: string): Slot {
    const existing = slots.get(name);
    if (existing) return existing;
    const slot = createSlot({ ...options, name, file: fileOf(name), closeLimitMs: limits.close });
    slots.set(name, slot);
    return slot;
  }

  async function find(call: CallContext, name: string): Promise<Lease | undefined> {
    if (closing) throw new CallError('UNAVAILABLE', 'the plugin is stopping');
    if (!isConnectionName(name)) throw new CallError('INVALID_ARGUMENT', `${shown(name)} is not a connection name`);
    try {
      const slot = slotOf(name);
      const acquiring = slot.acquire();
      const lease = await call
        .waitingFor(`the file of connection ${name}`, () => untilOver(call.signal, acquiring))
        .catch((error: unknown) => {
          acquiring.then((late) => late?.release()).catch(() => {});
          throw error;
        });
      if (!lease) forget(name, slot);
      if (lease) call.label('connection', name);
      if (lease) call.label('driver', lease.connection.driver.name);
      return lease;
    } catch (error) {
      throw namingConnection(name, error);
    }
  }

  /** Names come from outside: those without a file must not pile up. */
  function forget(name: string, slot: Slot): void {
    if (slots.get(name) === slot && slot.forgettable()) slots.delete(name);
  }

  async function names(): Promise<readonly string[]> {
    const files = await listFolder(folder);
    return files.flatMap((file) => connectionNameOf(file) ?? []).toSorted(compareNames);
  }

  return {
    find,
    names,
    async loadAll() {
      const found = await names().catch((error: unknown) => {
        log.warn(asCallError(error).message);
        return [];
      });
      // A file that cannot be used is logged where it is loaded.
      for (const name of found)
        await find(detachedContext(log), name).then(
          (lease) => lease?.release(),
          () => {},
        );
    },
    async use(call, name, work) {
      const lease = await find(call, name);
      if (!lease) {
        const file = fileOf(name);
        throw namingConnection(
          name,
          new CallError(
            'FAILED_PRECONDITION',
            `there is no file ${file}; put it back to use what this connection stores`,
          ),
        );
      }
      return await useLease(lease, work);
    },
    async look() {
      const found = await names().catch(() => []);
      const all = new Set([...slots.keys(), ...found]);
      await Promise.all(
        [...all].map(async (name) => {
          const slot = slotOf(name);
          await slot.look();
          forget(name, slot);
        }),
      );
    },
    status: () =>
      [...slots]
        .map(([name, slot]) => ({ name, file: fileOf(name), ...slot.status() }))
        .filter((one) => one.state !== 'absent')
        .toSorted((a, b) => compareNames(a.name, b.name)),
    close() {
      closing ??= Promise.all(
        [...slots.values()].map(async (slot) => {
          await within(limits.stop, slot.operations.stop());
          await slot.close();
        }),
      ).then(() => log.debug('all connections are closed'));
      return closing;
    },
  };
}

/** Names in the folder of connection files. Throws FAILED_PRECONDITION when it cannot be read, RESOURCE_EXHAUSTED when nothing can be. */
export async function listFolder(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const { code, message } = asCallError(error);
    // Out of file descriptors: nothing is wrong with the folder.
    const ours = code === 'RESOURCE_EXHAUSTED' ? code : 'FAILED_PRECONDITION';
    throw new CallError(ours, `the folder of connections, ${folder}, cannot be read (${errnoOf(error) ?? message})`);
  }
}
