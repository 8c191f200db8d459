/** Waits for `work`, at most `limitMs` milliseconds; `fallback` is the result of work that took longer, which goes on alone. Rejects as `work` does. */
export async function within<T, F = undefined>(limitMs: number, work: Promise<T>, fallback?: F): Promise<T | F> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<F>((resolve) => {
    timer = setTimeout(() => resolve(fallback as F), limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
