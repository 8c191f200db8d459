/** One list out of the lists of all connections, page by page, in the order of their names. */
import type { CallContext } from '../core/call.ts';
import { asCallError, CallError } from '../core/errors.ts';
import type { Page, PageRequest } from '../core/volume.ts';
import type { ProxyOptions } from './config.ts';
import type { Connection } from './connection.ts';
import { namingConnection } from './connection-error.ts';
import { compareNames } from './connection-name.ts';
import type { Connections } from './connections.ts';
import { limited } from './limited.ts';
import { decodePageToken, encodePageToken } from './page-token.ts';

/** Entries of a page when the caller sets no limit: a message of some megabytes. */
const mostEntries = 5000;

/** Milliseconds for one page of one connection. */
const pageLimitMs = 30_000;

export type ListOne<T> = (call: CallContext, page: PageRequest) => Promise<Page<T>>;

/**
 * A page of everything, from where the token says. `listOf` gives a connection's own list; connections without one are passed over.
 *
 * A connection that cannot be listed makes the list UNAVAILABLE, so that nobody takes its volumes for gone, unless the configuration says to
 * leave it out.
 */
export async function listAll<T>(
  call: CallContext,
  connections: Connections,
  options: ProxyOptions['listing'],
  page: PageRequest,
  listOf: (connection: Connection) => ListOne<T> | undefined,
): Promise<Page<T>> {
  const start = page.token === undefined ? undefined : decodePageToken(page.token);
  const limit = Math.min(page.limit || mostEntries, mostEntries);
  const names = (await connections.names()).filter((name) => !start || compareNames(name, start.connection) >= 0);
  const entries: T[] = [];
  for (const name of names) {
    let token = name === start?.connection ? start.token : undefined;
    do {
      if (entries.length >= limit) return { entries, nextToken: encodePageToken({ connection: name, token }) };
      const found = await listOne(call, connections, options, name, { limit: limit - entries.length, token }, listOf);
      for (const entry of found.entries) entries.push(entry);
      token = found.nextToken || undefined;
    } while (token !== undefined);
  }
  return { entries };
}

async function listOne<T>(
  call: CallContext,
  connections: Connections,
  options: ProxyOptions['listing'],
  name: string,
  page: PageRequest,
  listOf: (connection: Connection) => ListOne<T> | undefined,
): Promise<Page<T>> {
  try {
    return await limited(call, pageLimitMs, async (bounded) => {
      const lease = await connections.find(bounded, name);
      try {
        // The file may have gone since the folder was read.
        const found = (lease && (await listOf(lease.connection)?.(bounded, page))) ?? { entries: [] };
        assertProgress(page.token, found);
        return found;
      } finally {
        lease?.release();
      }
    });
  } catch (error) {
    const failure = namingConnection(name, error);
    if (call.signal.aborted || asCallError(error).code === 'ABORTED') throw failure;
    if (!options.skipUnavailable) throw new CallError('UNAVAILABLE', failure.message, { cause: error });
    call.log.warn('a connection cannot be listed and is left out', { connection: name, error: failure.message });
    return { entries: [] };
  }
}

/** A driver that hands out its starting token again would keep us here for ever. */
function assertProgress(token: string | undefined, { nextToken }: Page<unknown>): void {
  if (!nextToken || nextToken !== token) return;
  throw new CallError('INTERNAL', 'its driver lists the same page over and over');
}
