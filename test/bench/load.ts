/** Operations one after the other or many at a time, for a while. */

export interface Load {
  readonly operations: number;
  readonly wallMs: number;
  /** Of every operation. */
  readonly latenciesMs: readonly number[];
}

/** Runs operations for `forMs`, `concurrency` at a time. Rejects when one fails: a failure is no measurement. */
export async function load(
  operation: (worker: number) => Promise<unknown>,
  concurrency: number,
  forMs: number,
): Promise<Load> {
  const latenciesMs: number[] = [];
  const began = performance.now();
  const end = began + forMs;
  const work = async (worker: number) => {
    for (let now = performance.now(); now < end; ) {
      await operation(worker);
      const after = performance.now();
      latenciesMs.push(after - now);
      now = after;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, worker) => work(worker)));
  return { operations: latenciesMs.length, wallMs: performance.now() - began, latenciesMs };
}
