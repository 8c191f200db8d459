import { createHash } from 'node:crypto';

/** An ASCII id of at most `maxBytes`: itself, or its beginning, a dash and 64 bits of its SHA-256. The same id always gives the same text. */
export function shortenId(id: string, maxBytes: number): string {
  if (id.length <= maxBytes) return id;
  const digest = createHash('sha256').update(id).digest('hex').slice(0, 16);
  // A byte written as a dot and two digits is kept whole or not at all.
  const start = id.slice(0, maxBytes - digest.length - 1).replace(/\.[0-9a-f]?$/, '');
  return `${start}-${digest}`;
}

/** Whether an id looks as {@link shortenId} makes them; a person may have chosen it all the same. */
export function looksShortened(id: string): boolean {
  return /-[0-9a-f]{16}$/.test(id);
}
