/** A stream that tells of several things one after the other, each of which ends with a mark of its own. */
import type { Readable } from 'node:stream';

export interface Section {
  /** Settles with the number that the mark came with. */
  readonly end: Promise<number>;
  /** What has come so far, without the mark. */
  text(): string;
  /** More came than is kept. */
  truncated(): boolean;
}

export interface Sections {
  /** Begins with what comes from now on. It ends with a line of the mark and a number, which comes after a line end. */
  begin(mark: string): Section;
}

/** More than a mark and its number have. */
const tailBytes = 100;

/** Keeps `limit` bytes of each section. What comes between sections is passed over. */
export function readSections(stream: Readable, limit: number): Sections {
  let take: ((chunk: Buffer) => void) | undefined;
  stream.on('data', (chunk: Buffer) => take?.(chunk));
  return {
    begin(mark) {
      const ending = new RegExp(`\\n${mark} (\\d+)\\n$`);
      const chunks: Buffer[] = [];
      let size = 0;
      let tail = '';
      let truncated = false;
      const end = new Promise<number>((resolve) => {
        take = (chunk) => {
          tail = (tail + chunk.toString('latin1')).slice(-tailBytes);
          const kept = chunk.subarray(0, Math.max(0, limit + tailBytes - size));
          if (kept.length < chunk.length) truncated = true;
          chunks.push(kept);
          size += kept.length;
          const found = ending.exec(tail);
          if (!found) return;
          take = undefined;
          if (!truncated) {
            const whole = Buffer.concat(chunks);
            chunks.splice(0, chunks.length, whole.subarray(0, whole.length - found[0].length));
          }
          resolve(Number(found[1]));
        };
      });
      return {
        end,
        text: () => Buffer.concat(chunks).toString('utf8'),
        truncated: () => truncated,
      };
    },
  };
}
