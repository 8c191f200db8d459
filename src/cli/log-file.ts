/** The log in a file too, for places where standard output is hard to find. It has a bounded size: a full file becomes `<path>.1`. */
import { appendFile, mkdir, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { asCallError, errnoOf } from '../core/errors.ts';

export interface LogFile {
  write(line: string): void;
  /** Resolves when all that was written is in the file. Never rejects. */
  close(): Promise<void>;
}

export interface LogFileOptions {
  readonly path: string;
  /** Bytes of each of the two files. */
  readonly maxBytes: number;
  /** Told once, when the file cannot be written. Logging goes on elsewhere. */
  readonly onFailure: (reason: string) => void;
}

/** Characters that wait for a disk that does not answer; what comes beyond is lost. */
const mostWaiting = 2 ** 22;

/** The file and its folder are made with the first line. */
export function openLogFile({ path, maxBytes, onFailure }: LogFileOptions): LogFile {
  let waiting: string[] = [];
  let waitingLength = 0;
  let size: number | undefined;
  let writing: Promise<void> | undefined;
  let failed = false;

  async function flush(): Promise<void> {
    while (waiting.length > 0) {
      const text = waiting.join('');
      waiting = [];
      waitingLength = 0;
      try {
        await append(text);
        failed = false;
      } catch (error) {
        if (!failed) onFailure(`the log file ${path} cannot be written: ${asCallError(error).message}`);
        failed = true;
      }
    }
  }

  async function append(text: string): Promise<void> {
    size ??= await sizeOf(path);
    const bytes = Buffer.byteLength(text);
    if (size > 0 && size + bytes > maxBytes) {
      await rename(path, `${path}.1`);
      size = 0;
    }
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    await appendFile(path, text, { mode: 0o640 });
    size += bytes;
  }

  return {
    write(line) {
      if (waitingLength > mostWaiting) return;
      waiting.push(line);
      waitingLength += line.length;
      writing ??= flush().finally(() => {
        writing = undefined;
      });
    },
    async close() {
      await writing;
    },
  };
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (found.isFile()) return found.size;
    throw new Error('it is no regular file');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 0;
    throw error;
  }
}
