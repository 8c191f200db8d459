/** Where a list over all connections goes on. */
import { CallError } from '../core/errors.ts';
import { isConnectionName } from './connection-name.ts';

export interface PagePosition {
  readonly connection: string;
  /** The driver's own token; undefined: from the connection's beginning. */
  readonly token?: string | undefined;
}

/** Names no number of connections and no order, so that it stays right when connections come and go. */
export function encodePageToken({ connection, token }: PagePosition): string {
  return Buffer.from(JSON.stringify(token === undefined ? [connection] : [connection, token])).toString('base64url');
}

/** Throws ABORTED for text that is no token of this plugin (CSI spec, ListVolumes errors). */
export function decodePageToken(text: string): PagePosition {
  const value = parse(Buffer.from(text, 'base64url').toString('utf8'));
  if (Array.isArray(value) && value.length <= 2) {
    const [connection, token] = value as readonly unknown[];
    const fits = typeof connection === 'string' && isConnectionName(connection);
    if (fits && (token === undefined || typeof token === 'string')) return { connection, token };
  }
  throw new CallError('ABORTED', 'the starting token is not one of this plugin; list again from the beginning');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
