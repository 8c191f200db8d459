import type { CallContext } from '../../core/call.ts';
import { reasonOf } from '../../core/call.ts';

/** Lets so many run at once; the others wait their turn, in order. */
export interface Channels {
  use<T>(call: Pick<CallContext, 'signal'>, work: () => Promise<T>): Promise<T>;
}

export function createChannels(limit: number): Channels {
  const waiting: (() => void)[] = [];
  let busy = 0;

  async function enter(signal: AbortSignal): Promise<void> {
    if (busy < limit) {
      busy++;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const turn = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = () => {
        waiting.splice(waiting.indexOf(turn), 1);
        reject(reasonOf(signal));
      };
      waiting.push(turn);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else busy--;
  }

  return {
    async use(call, work) {
      await enter(call.signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
