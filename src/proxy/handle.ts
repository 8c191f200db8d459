/**
 * Handles: the ids that clients see, `v:<connection>/<id>` for volumes and `s:<connection>/<id>` for snapshots.
 *
 * The id behind the slash belongs to the connection's driver and may hold slashes of its own. Handles arrive from outside and are hostile.
 */
import { CallError } from '../core/errors.ts';
import type { ContentSource } from '../core/volume.ts';
import { isConnectionName } from './connection-name.ts';
import { hasControlCharacters } from './control-characters.ts';

export type HandleKind = ContentSource['type'];

export interface Handle {
  readonly connection: string;
  /** The id as the connection's driver knows it. */
  readonly id: string;
}

/** Bytes that a new handle may have (CSI spec, "Size Limits"). */
export const maxHandleBytes = 128;

/** Bytes that an arriving handle may have: other provisioners of the same format made longer ones than the spec allows. */
const maxArrivingBytes = 1024;

const letters: Readonly<Record<HandleKind, string>> = { volume: 'v', snapshot: 's' };

export function encodeHandle(kind: HandleKind, connection: string, id: string): string {
  return `${letters[kind]}:${connection}/${id}`;
}

/** Bytes that are left for the driver's own ids within a handle of this connection. */
export function idBytesBehind(connection: string): number {
  return maxHandleBytes - Buffer.byteLength(encodeHandle('volume', connection, ''));
}

/** Undefined when it is not a handle of this kind, or not one that could have been given out. */
export function decodeHandle(kind: HandleKind, text: string): Handle | undefined {
  if (text.length > maxArrivingBytes || Buffer.byteLength(text) > maxArrivingBytes) return undefined;
  const prefix = `${letters[kind]}:`;
  const slash = text.indexOf('/');
  if (!text.startsWith(prefix) || slash < 0) return undefined;
  const connection = text.slice(prefix.length, slash);
  const id = text.slice(slash + 1);
  return isConnectionName(connection) && isPlausibleId(id) ? { connection, id } : undefined;
}

/** The handle's parts, or NOT_FOUND: something that was never given out does not exist. */
export function requireHandle(kind: HandleKind, text: string): Handle {
  const handle = decodeHandle(kind, text);
  if (handle) return handle;
  throw new CallError(
    'NOT_FOUND',
    `there is no ${kind} ${shown(text)}: ids of this plugin are ${letters[kind]}:<connection>/<id>`,
  );
}

/** Throws INVALID_ARGUMENT for a new id whose handle would be longer than the spec allows. */
export function assertHandleFits(kind: HandleKind, connection: string, id: string): void {
  const idBytes = Buffer.byteLength(id);
  const total = Buffer.byteLength(encodeHandle(kind, connection, id));
  if (total <= maxHandleBytes) return;
  throw new CallError(
    'INVALID_ARGUMENT',
    `the ${kind} id would have ${total} bytes (${idBytes} of the name, ${total - idBytes} for the connection), but at most ` +
      `${maxHandleBytes} are allowed; use a name of at most ${maxHandleBytes - total + idBytes} bytes or a shorter connection name`,
  );
}

/** A piece of hostile text, short and printable, for messages. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text);
}

/** No driver makes ids with control characters or with steps upwards, so such an id need not reach one. */
function isPlausibleId(id: string): boolean {
  if (id === '' || hasControlCharacters(id)) return false;
  return !id.split('/').some((step) => step === '..' || step === '.');
}
