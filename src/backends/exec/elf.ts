/** What a program file says of how it wants to be started, elf(5). */
import { type FileHandle, open } from 'node:fs/promises';

export interface Elf {
  /** Word size, byte order and processor: libraries must have the same. */
  readonly machine: string;
  /** The dynamic loader. Undefined: the program is static, or this is a library. */
  readonly interpreter: string | undefined;
  /** Names of the libraries it needs. */
  readonly needed: readonly string[];
  /** Directories that it looks for them in first; may begin with `$ORIGIN`. */
  readonly runPath: readonly string[];
}

const loadable = 1;
const dynamic = 2;
const interpreter = 3;
const neededTag = 1;
const stringsTag = 5;
const runPathTags: readonly number[] = [15, 29];

/** Reads the headers of a file. Undefined when it is not an ELF file, such as a script. Throws when it cannot be read. */
export async function readElf(path: string): Promise<Elf | undefined> {
  const file = await open(path);
  try {
    const header = await bytes(file, 0, 64);
    if (header.length < 64 || header.readUInt32BE(0) !== 0x7f454c46) return undefined;
    const words = wordsOf(header);
    const segments = await readSegments(file, header, words);
    const named = segments.find((one) => one.type === interpreter);
    const table = segments.find((one) => one.type === dynamic);
    const entries = table ? await readDynamic(file, table, words) : [];
    const text = await readStrings(file, segments, entries);
    const texts = (tags: readonly number[]) => entries.filter(([tag]) => tags.includes(tag)).map(([, at]) => text(at));
    return {
      machine: `${header.subarray(4, 6).toString('hex')}-${words.half(header, 18)}`,
      interpreter: named && terminated(await bytes(file, named.offset, named.size), 0),
      needed: texts([neededTag]),
      runPath: texts(runPathTags).flatMap((list) => list.split(':').filter((one) => one !== '')),
    };
  } finally {
    await file.close();
  }
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

interface Words {
  readonly is64: boolean;
  half(buffer: Buffer, at: number): number;
  word(buffer: Buffer, at: number): number;
  /** An address or offset: as wide as the machine's. */
  wide(buffer: Buffer, at: number): number;
}

function wordsOf(header: Buffer): Words {
  const is64 = header[4] === 2;
  const little = header[5] === 1;
  const half = (buffer: Buffer, at: number) => (little ? buffer.readUInt16LE(at) : buffer.readUInt16BE(at));
  const word = (buffer: Buffer, at: number) => (little ? buffer.readUInt32LE(at) : buffer.readUInt32BE(at));
  const long = (buffer: Buffer, at: number) => Number(little ? buffer.readBigUInt64LE(at) : buffer.readBigUInt64BE(at));
  return { is64, half, word, wide: is64 ? long : word };
}

async function readSegments(file: FileHandle, header: Buffer, words: Words): Promise<readonly Segment[]> {
  const [tableAt, sizeAt, smallest] = words.is64 ? [32, 54, 56] : [28, 42, 32];
  const size = words.half(header, sizeAt);
  if (size < smallest) return [];
  const count = words.half(header, sizeAt + 2);
  const table = await bytes(file, words.wide(header, tableAt), size * count);
  const [offset, address, length] = words.is64 ? [8, 16, 32] : [4, 8, 16];
  return Array.from({ length: Math.floor(table.length / size) }, (_, index) => ({
    type: words.word(table, index * size),
    offset: words.wide(table, index * size + offset),
    address: words.wide(table, index * size + address),
    size: words.wide(table, index * size + length),
  }));
}

async function readDynamic(file: FileHandle, table: Segment, words: Words): Promise<[tag: number, value: number][]> {
  const content = await bytes(file, table.offset, table.size);
  const width = words.is64 ? 8 : 4;
  return Array.from({ length: Math.floor(content.length / (2 * width)) }, (_, index) => [
    words.wide(content, index * 2 * width),
    words.wide(content, (index * 2 + 1) * width),
  ]);
}

async function readStrings(
  file: FileHandle,
  segments: readonly Segment[],
  entries: readonly (readonly [number, number])[],
): Promise<(at: number) => string> {
  const address = entries.find(([tag]) => tag === stringsTag)?.[1];
  const holder =
    address === undefined
      ? undefined
      : segments.find((one) => one.type === loadable && address >= one.address && address < one.address + one.size);
  if (address === undefined || !holder) return () => '';
  const size = entries.find(([tag]) => tag === 10)?.[1] ?? 0;
  const table = await bytes(file, holder.offset + address - holder.address, size);
  return (at) => terminated(table, at);
}

function terminated(buffer: Buffer, at: number): string {
  const end = buffer.indexOf(0, at);
  return buffer.toString('utf8', at, end < 0 ? buffer.length : end);
}

/** Fewer where the file ends before, whatever its headers say. */
async function bytes(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const left = (await file.stat()).size - offset;
  const buffer = Buffer.alloc(Math.max(0, Math.min(size, left)));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, buffer.length > 0 ? offset : 0);
  return buffer.subarray(0, bytesRead);
}
