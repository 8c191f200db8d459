/**
 * The id of a volume from the name an orchestrator gives it.
 *
 * Ids are directory names, dataset names and parts of handles. So an id has ASCII letters, digits, `_` and `-` only, begins with a letter or
 * digit, and is the name itself when the name is like that. Any other byte of a name is written as a dot and two hexadecimal digits: `web[0]`
 * becomes `web.5b0.5d`, which can be read back, and `..` or `/` can never appear.
 */

import { CallError } from '../../core/errors.ts';
import type { Parameters } from '../../core/volume.ts';
import type { IdHash } from './id-hash.ts';
import { hashId } from './id-hash.ts';
import { shortenId } from './shorten-id.ts';

export interface NamingOptions {
  /** `_private.csi.volume.idTemplate`, compiled: makes the text that stands for the name. */
  readonly template?: ((values: IdValues) => string) | undefined;
  /** `_private.csi.volume.idHash.strategy`. */
  readonly hash?: IdHash | undefined;
  /** Longer ids are shortened to this many bytes, always in the same way. */
  readonly maxBytes: number;
}

/** What an id template can use. */
export interface IdValues {
  readonly name: string;
  readonly parameters: Parameters;
}

/** The id for a volume of this name. Throws INVALID_ARGUMENT for a name that is empty or has control characters. */
export function volumeId(values: IdValues, options: NamingOptions): string {
  requireName(values.name, 'volume name');
  const text = options.template ? options.template(values) : values.name;
  requireName(text, 'volume id made from the id template');
  const hashed = options.hash ? hashId(text, options.hash) : text;
  return shortenId(encodeName(hashed), options.maxBytes);
}

/** Whether a text can be the id of a volume of a driver that names its volumes with {@link volumeId}, or that democratic-csi named. */
export function isVolumeId(text: string): boolean {
  return text.length <= 128 && /^(?:[A-Za-z0-9_-]|\.[0-9a-f]{2})+$/.test(text);
}

/** A name as an id, reversibly. */
export function encodeName(name: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name)) return name;
  let id = '';
  for (const byte of Buffer.from(name, 'utf8')) {
    const character = String.fromCharCode(byte);
    const plain = id === '' ? /[A-Za-z0-9]/ : /[A-Za-z0-9_-]/;
    id += plain.test(character) ? character : `.${byte.toString(16).padStart(2, '0')}`;
  }
  return id;
}

/** The name that {@link encodeName} made this id from. Undefined when it did not: then nothing tells the name. */
export function decodeName(id: string): string | undefined {
  if (!isVolumeId(id)) return undefined;
  const bytes = id.replace(/\.([0-9a-f]{2})/g, (_all, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  const name = Buffer.from(bytes, 'latin1').toString('utf8');
  // No volume is made under a name with control characters, and they could steer a terminal.
  return encodeName(name) === id && !/\p{Cc}/u.test(name) ? name : undefined;
}

function requireName(text: string, what: string): void {
  if (text === '') throw new CallError('INVALID_ARGUMENT', `the ${what} is empty`);
  if (/[\p{Cc}\p{Cs}]/u.test(text)) {
    throw new CallError('INVALID_ARGUMENT', `the ${what} ${JSON.stringify(text.slice(0, 64))} has control characters`);
  }
}
