import { reasonOf } from '../../core/call.ts';

/** Lets a limited number do something at once, in the order in which they came. */
export interface Turns {
  /** A turn now, to be given back by calling it; undefined when all are taken. */
  take(): (() => void) | undefined;
  /** A turn as soon as there is one. Rejects with the reason when the signal is aborted before. */
  wait(signal: AbortSignal): Promise<() => void>;
  waiting(): number;
}

export function createTurns(atOnce: number): Turns {
  let taken = 0;
  const queue = new Set<() => void>();

  function turn(): () => void {
    taken++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      taken--;
      const [next] = queue;
      if (!next) return;
      queue.delete(next);
      next();
    };
  }

  const take = () => (taken < atOnce && queue.size === 0 ? turn() : undefined);

  return {
    take,
    waiting: () => queue.size,
    async wait(signal) {
      if (signal.aborted) throw reasonOf(signal);
      const now = take();
      if (now) return now;
      return await new Promise((resolve, reject) => {
        const over = () => {
          queue.delete(next);
          reject(reasonOf(signal));
        };
        const next = () => {
          signal.removeEventListener('abort', over);
          resolve(turn());
        };
        queue.add(next);
        signal.addEventListener('abort', over, { once: true });
      });
    },
  };
}
