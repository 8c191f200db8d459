/** Reading a configuration file's text. */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { errnoOf, oneLine } from '../core/errors.ts';
import { ConfigError } from './problem.ts';

const maxBytes = 1024 * 1024;
const chunkBytes = 64 * 1024;

/**
 * The text of a configuration file: a regular file, or a symbolic link to one, of at most 1 MiB in UTF-8. Throws ConfigError otherwise; its
 * `cause` is the system's error when there is one.
 */
export async function readConfigFile(path: string): Promise<string> {
  // O_NONBLOCK: opening a named pipe must not wait for somebody to write to it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw unusable(path, reasons[errnoOf(error) ?? ''] ?? reasonOf(error), error);
  });
  try {
    const status = await file.stat();
    if (status.isDirectory()) throw unusable(path, 'it is a folder, not a file');
    if (!status.isFile()) throw unusable(path, 'it is not a regular file');
    return new TextDecoder('utf-8', { fatal: true }).decode(await readAll(path, file));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw unusable(path, error instanceof TypeError ? 'it is not UTF-8 text' : reasonOf(error), error);
  } finally {
    await file.close();
  }
}

/** All bytes there are, whatever size the file said it has: it may be growing. */
async function readAll(path: string, file: FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(chunkBytes), 0, chunkBytes, total);
    if (bytesRead === 0) return Buffer.concat(chunks);
    total += bytesRead;
    if (total > maxBytes) throw unusable(path, 'it is larger than 1 MiB');
    chunks.push(buffer.subarray(0, bytesRead));
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this process may not read it',
  EPERM: 'this process may not read it',
  ELOOP: 'its symbolic links go round in circles',
  ENAMETOOLONG: 'its name is too long',
};

function reasonOf(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error));
}

function unusable(path: string, reason: string, cause?: unknown): ConfigError {
  const message = `cannot read the configuration: ${reason}`;
  return new ConfigError([{ severity: 'error', file: path, line: 0, column: 0, path: '', message }], { cause });
}
