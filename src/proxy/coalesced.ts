/**
 * Shares runs of `work` among callers: each gets the result of a run that began after he asked, and no two run at once. However many ask while
 * one is under way, one more follows it.
 */
export function coalesced<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;

  function begin(): Promise<T> {
    const run = work().finally(() => {
      running = undefined;
    });
    running = run;
    return run;
  }

  async function follow(before: Promise<T>): Promise<T> {
    await Promise.allSettled([before]);
    next = undefined;
    return begin();
  }

  return () => {
    if (!running) return begin();
    next ??= follow(running);
    return next;
  };
}
