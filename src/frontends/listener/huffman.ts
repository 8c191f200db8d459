/**
 * The part of HPACK's Huffman code that text needs (RFC 7541, appendix B): NUL and the printable ASCII characters whose codes have at most 15
 * bits. The code is canonical, so the lengths give the codes.
 */

/** Bits of the codes of U+0020 … U+007E in hexadecimal; 0 stands for `\`, whose code has 19. */
const lengths = '6aacd68baa8b8666555666666678f6cad67777777777777777777777878d0de6f56565666577666567655677777fbed';
const longest = 15;

/** A character of a coded text: where its code begins, counted in bits from the start, and how long it is. */
export interface CodedCharacter {
  readonly character: string;
  readonly bit: number;
  readonly length: number;
}

interface Code {
  readonly character: string;
  readonly length: number;
  readonly code: number;
}

const codes: readonly Code[] = canonicalCodes();
const byCharacter = new Map(codes.map((one) => [one.character, one]));
/** Keyed by the code with a leading 1, so that `00` and `000` differ. */
const byCode = new Map(codes.map((one) => [(1 << one.length) | one.code, one]));

/** The characters of a Huffman-coded string, or undefined when it holds one that is not in this part of the code. */
export function decodeHuffman(coded: Buffer): CodedCharacter[] | undefined {
  const characters: CodedCharacter[] = [];
  let code = 1;
  let length = 0;
  for (let bit = 0; bit < coded.length * 8; bit++) {
    code = (code << 1) | ((coded[bit >> 3]! >> (7 - (bit & 7))) & 1);
    length++;
    const found = byCode.get(code);
    if (found) {
      characters.push({ character: found.character, bit: bit - length + 1, length });
      code = 1;
      length = 0;
    } else if (length >= longest) return undefined;
  }
  return characters;
}

/** Writes a character's code over another of the same length. False, and nothing written, when the lengths differ. */
export function overwriteHuffman(coded: Buffer, at: CodedCharacter, character: string): boolean {
  const replacement = byCharacter.get(character);
  if (replacement?.length !== at.length) return false;
  for (let i = 0; i < at.length; i++) {
    const bit = at.bit + i;
    const mask = 0x80 >> (bit & 7);
    const set = (replacement.code >> (at.length - 1 - i)) & 1;
    coded[bit >> 3] = set ? coded[bit >> 3]! | mask : coded[bit >> 3]! & ~mask;
  }
  return true;
}

function canonicalCodes(): readonly Code[] {
  const rows = [{ character: '\0', length: 13 }];
  for (const [index, digit] of [...lengths].entries()) {
    const length = Number.parseInt(digit, 16);
    if (length > 0) rows.push({ character: String.fromCharCode(0x20 + index), length });
  }
  rows.sort((a, b) => a.length - b.length || (a.character < b.character ? -1 : 1));
  let code = 0;
  let last = 0;
  return rows.map((row) => {
    code <<= row.length - last;
    last = row.length;
    return { ...row, code: code++ };
  });
}
