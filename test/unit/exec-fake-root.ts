/** Roots of hosts that are not there: directories, links, configuration and program files with real ELF headers. */
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

export interface FakeElf {
  readonly interpreter?: string;
  readonly needed?: readonly string[];
  readonly runPath?: string;
  /** Default: 64. */
  readonly bits?: 32 | 64;
  /** Default: true. */
  readonly littleEndian?: boolean;
  /** Default: 62, x86-64. 183 is aarch64. */
  readonly processor?: number;
}

/** Text is a file; `->` a link; an object a program or library. */
export type FakeRoot = Readonly<Record<string, string | FakeElf>>;

/** Makes a root in a temporary folder and gives its path, free of symbolic links. */
export async function makeRoot(t: TestContext, entries: FakeRoot): Promise<string> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'fake-root-')));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const [path, entry] of Object.entries(entries)) {
    const at = join(root, path);
    await mkdir(dirname(at), { recursive: true });
    if (typeof entry !== 'string') await writeFile(at, elfFile(entry));
    else if (entry.startsWith('-> ')) await symlink(entry.slice(3), at);
    else await writeFile(at, entry);
    if (typeof entry !== 'string' || entry.startsWith('#!')) await chmod(at, 0o755);
  }
  return root;
}

/** A file with the headers of a program or library, and nothing to run. */
export function elfFile(elf: FakeElf): Buffer {
  const { interpreter, needed = [], runPath, bits = 64, littleEndian = true, processor = 62 } = elf;
  const wide = bits === 64;
  const header = wide ? 64 : 52;
  const entry = wide ? 56 : 32;
  const strings = Buffer.from(`\0${[...needed, runPath ?? '', interpreter ?? ''].join('\0')}\0`);
  const offsetOf = (text: string) => strings.indexOf(`\0${text}\0`) + 1;
  const stringsAt = header + 3 * entry;
  const dynamicAt = stringsAt + strings.length;
  const address = 0x10000;
  const tags: [number, number][] = [
    ...needed.map((name): [number, number] => [1, offsetOf(name)]),
    ...(runPath === undefined ? [] : [[29, offsetOf(runPath)] as [number, number]]),
    [5, address + stringsAt],
    [10, strings.length],
    [0, 0],
  ];
  const dynamicSize = tags.length * (wide ? 16 : 8);
  const file = Buffer.alloc(dynamicAt + dynamicSize);

  const half = (value: number, at: number) =>
    littleEndian ? file.writeUInt16LE(value, at) : file.writeUInt16BE(value, at);
  const word = (value: number, at: number) =>
    littleEndian ? file.writeUInt32LE(value, at) : file.writeUInt32BE(value, at);
  const long = (value: number, at: number) => {
    if (!wide) return word(value, at);
    return littleEndian ? file.writeBigUInt64LE(BigInt(value), at) : file.writeBigUInt64BE(BigInt(value), at);
  };
  const segment = (index: number, type: number, offset: number, size: number) => {
    const at = header + index * entry;
    word(type, at);
    const [offsetAt, addressAt, sizeAt] = wide ? [8, 16, 32] : [4, 8, 16];
    long(offset, at + offsetAt);
    long(address + offset, at + addressAt);
    long(size, at + sizeAt);
  };

  file.write('\x7fELF', 'latin1');
  file[4] = wide ? 2 : 1;
  file[5] = littleEndian ? 1 : 2;
  half(processor, 18);
  long(header, wide ? 32 : 28);
  half(entry, wide ? 54 : 42);
  half(3, wide ? 56 : 44);
  segment(0, 1, 0, file.length);
  segment(1, 2, dynamicAt, dynamicSize);
  if (interpreter !== undefined) segment(2, 3, stringsAt + offsetOf(interpreter), interpreter.length + 1);
  strings.copy(file, stringsAt);
  tags.forEach(([tag, value], index) => {
    long(tag, dynamicAt + index * (wide ? 16 : 8));
    long(value, dynamicAt + index * (wide ? 16 : 8) + (wide ? 8 : 4));
  });
  return file;
}
