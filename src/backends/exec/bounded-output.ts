import type { ChildOutput } from './child.ts';
import { untakenLines } from './untaken-lines.ts';

/** What a child has written to one of its streams, up to a limit. */
export interface BoundedOutput {
  readonly truncated: () => boolean;
  /** The text so far; when it was cut, the last line says so. */
  readonly text: () => string;
}

/**
 * Reads a stream to its end and keeps the first `limit` bytes: a child that floods its output never blocks and never fills the memory.
 * Lines that `takeLine` takes do not count. A child that could not be started may have no stream.
 */
export function collectOutput(
  stream: ChildOutput | null | undefined,
  limit: number,
  takeLine?: (line: string) => boolean,
): BoundedOutput {
  const chunks: Buffer[] = [];
  let kept = 0;
  let seen = 0;
  const keep = (chunk: Buffer) => {
    seen += chunk.length;
    if (kept >= limit) return;
    const part = chunk.subarray(0, limit - kept);
    chunks.push(part);
    kept += part.length;
  };
  const lines = takeLine && untakenLines(takeLine, keep);
  stream?.on('data', lines ? lines.add : keep);
  // A pipe that breaks has nothing more to say; how the child ended is told by its exit.
  stream?.on('error', () => {});
  return {
    truncated: () => seen > kept,
    text: () => {
      lines?.end();
      return Buffer.concat(chunks).toString('utf8') + (seen > kept ? `\n[output cut after ${limit} bytes]` : '');
    },
  };
}
