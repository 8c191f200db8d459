import { untilOver } from '../core/call.ts';

/** Ends of the queues, by key. One table for the process: after a configuration change two planes serve the same volumes for a while. */
const tails = new Map<string, Promise<unknown>>();

/** Runs `work` when all earlier work with this key has ended. Rejects when the signal is aborted before its turn comes; then `work` never runs. */
export async function withLock<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const before = tails.get(key) ?? Promise.resolve();
  let free = () => {};
  const mine = new Promise<void>((resolve) => {
    free = resolve;
  });
  const tail = before.then(() => mine);
  tails.set(key, tail);
  try {
    await untilOver(signal, before);
    return await work();
  } finally {
    free();
    if (tails.get(key) === tail) tails.delete(key);
  }
}
