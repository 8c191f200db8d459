/**
 * Old gRPC clients send the socket's path as `:authority` (`/csi/csi.sock`). The HTTP/2 implementations of Node.js and Deno refuse such a
 * request, as RFC 3986 section 3.2 lets them, so the offending characters are replaced before they see it.
 *
 * Nothing is encoded anew: a replacement has the length of what it replaces, also under the Huffman code. So the frame keeps its length, and
 * the table of recent headers that both sides keep (RFC 7541, section 2.3.2) stays the same but for the characters.
 */
import { decodeHuffman, overwriteHuffman } from './huffman.ts';

const authorityIndex = 1;
const name = Buffer.from(':authority');
/** The same, Huffman-coded. */
const codedName = Buffer.from('b83b5339ec327d7f', 'hex');

/** What an authority may hold; both implementations agree on it. */
const allowed = /[A-Za-z0-9!$%&'()*+,\-.:;=[\]_~]/;

/** Each has a Huffman code of the same length as its replacement. Others exist only in uncoded text, where one byte is as long as any. */
const replacements: Readonly<Record<string, string>> = { '/': '-', ' ': '-', '"': '!', '?': '!', '@': '~', '|': '+' };

/**
 * Mends every `:authority` in a complete header block (RFC 7541, section 6), in place. True when something was changed. A block that is
 * malformed is left as it is from there on, for the HTTP/2 implementation to refuse.
 */
export function mendAuthority(block: Buffer): boolean {
  const cursor = { at: 0 };
  let changed = false;
  while (cursor.at < block.length) {
    const first = block[cursor.at]!;
    if (first >= 0x80) {
      if (readInteger(block, cursor, 7) === undefined) return changed;
    } else if ((first & 0xe0) === 0x20) {
      if (readInteger(block, cursor, 5) === undefined) return changed;
    } else {
      const index = readInteger(block, cursor, first >= 0x40 ? 6 : 4);
      const ownName = index === 0 ? readString(block, cursor) : undefined;
      if (index === undefined || (index === 0 && !ownName)) return changed;
      const value = readString(block, cursor);
      if (!value) return changed;
      if (index === authorityIndex || (ownName && isAuthority(ownName))) changed = mendValue(value) || changed;
    }
  }
  return changed;
}

interface CodedString {
  readonly huffman: boolean;
  /** A view of the block. */
  readonly bytes: Buffer;
}

function isAuthority({ huffman, bytes }: CodedString): boolean {
  return bytes.equals(huffman ? codedName : name);
}

function mendValue({ huffman, bytes }: CodedString): boolean {
  return huffman ? mendCoded(bytes) : mendPlain(bytes);
}

function mendPlain(bytes: Buffer): boolean {
  let changed = false;
  for (const [i, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte);
    if (allowed.test(character)) continue;
    bytes[i] = (replacements[character] ?? '-').charCodeAt(0);
    changed = true;
  }
  return changed;
}

function mendCoded(bytes: Buffer): boolean {
  let changed = false;
  for (const one of decodeHuffman(bytes) ?? []) {
    if (allowed.test(one.character)) continue;
    const replacement = replacements[one.character];
    if (replacement !== undefined) changed = overwriteHuffman(bytes, one, replacement) || changed;
  }
  return changed;
}

/** RFC 7541, section 5.1. Undefined when the block ends too early, or for more than 2^28, which nothing in a block can mean. */
function readInteger(block: Buffer, cursor: { at: number }, prefixBits: number): number | undefined {
  const mask = (1 << prefixBits) - 1;
  const first = block[cursor.at++];
  if (first === undefined) return undefined;
  let value = first & mask;
  if (value < mask) return value;
  for (let shift = 0; shift <= 21; shift += 7) {
    const byte = block[cursor.at++];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return undefined;
}

/** RFC 7541, section 5.2. */
function readString(block: Buffer, cursor: { at: number }): CodedString | undefined {
  const huffman = (block[cursor.at] ?? 0) >= 0x80;
  const length = readInteger(block, cursor, 7);
  if (length === undefined || cursor.at + length > block.length) return undefined;
  const bytes = block.subarray(cursor.at, cursor.at + length);
  cursor.at += length;
  return { huffman, bytes };
}
