import { asCallError, CallError } from '../../core/errors.ts';

/** Settles as `work` does, or rejects with UNAVAILABLE after `limitMs` milliseconds; the work is left to itself then. */
export async function bounded<T>(limitMs: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const error = new CallError('UNAVAILABLE', `${what} did not answer within ${limitMs / 1000} s`);
    timer = setTimeout(() => reject(error), limitMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** One line for people. */
export function whyOf(error: unknown): string {
  return asCallError(error).message;
}

/** Runs `work` on all items, at most `atOnce` at a time. The results are in the order of the items. */
export async function forEach<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const left = [...items.entries()];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
