import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A place for what a program says, which neither breaks when this process ends nor leaves anything behind. */
export interface UnnamedFile {
  readonly descriptor: number;
  /** The first `limit` bytes of it, as text. It is closed after that. */
  finish(limit: number): Promise<string>;
}

/** Undefined where no file can be written. */
export async function openUnnamedFile(): Promise<UnnamedFile | undefined> {
  const path = join(tmpdir(), `.switchboard-${process.pid}-${crypto.randomUUID()}`);
  try {
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    return { descriptor: file.fd, finish: (limit) => readAndClose(file, limit) };
  } catch {
    return undefined;
  }
}

async function readAndClose(file: FileHandle, limit: number): Promise<string> {
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(limit), 0, limit, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
