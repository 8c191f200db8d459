/** Items worked on at once: each may hold a file open, of which a process can have a limited number. */
const batchSize = 32;

/** The results of `work` for all items, in their order, a few at a time. */
export async function inBatches<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += batchSize) {
    results.push(...(await Promise.all(items.slice(at, at + batchSize).map(work))));
  }
  return results;
}
