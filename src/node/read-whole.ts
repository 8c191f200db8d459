import { type FileHandle, open } from 'node:fs/promises';

/**
 * Makes a reader for a small file of the kernel's that is read often: it is opened once. Every call gets what the file says after the call
 * was made; calls that come while a reading is under way share the one after it, since two readings of one open file must not interleave.
 */
export function readWhole(path: string): () => Promise<string> {
  let file: Promise<FileHandle> | undefined;
  let underWay: Promise<unknown> | undefined;
  let next: Promise<string> | undefined;
  const buffer = Buffer.allocUnsafe(chunk);

  async function read(): Promise<string> {
    // A file that could not be opened is tried again by the next call.
    file ??= open(path).catch((error: unknown) => {
      file = undefined;
      throw error;
    });
    return await toEnd(await file, buffer);
  }
  return () => {
    next ??= (underWay ?? Promise.resolve()).then(() => {
      next = undefined;
      const reading = read();
      underWay = reading.catch(() => {});
      return reading;
    });
    return next;
  };
}

const chunk = 32 * 1024;

async function toEnd(file: FileHandle, buffer: Buffer): Promise<string> {
  const parts: Buffer[] = [];
  for (let position = 0; ; ) {
    // The kernel gives about a page at a time, and says that this was all only when asked again.
    const { bytesRead } = await file.read(buffer, 0, chunk, position);
    if (bytesRead === 0) return Buffer.concat(parts).toString('utf8');
    parts.push(Buffer.from(buffer.subarray(0, bytesRead)));
    position += bytesRead;
  }
}
