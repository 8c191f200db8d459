/** The workers of a host, kept for a while after they were needed. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallContext } from '../../core/call.ts';
import { reasonOf } from '../../core/call.ts';
import { ChannelRefused, type SshClient } from './client.ts';
import { createWorker, type Worker, workerCommand } from './worker.ts';

export interface Workers {
  /** One on this connection that has nothing to do, or a new one. Throws what {@link SshClient.exec} throws. */
  take(call: Pick<CallContext, 'signal'>, client: SshClient): Promise<Worker>;
  /** Gives it back when its script has come to its end. */
  giveBack(client: SshClient, worker: Worker): void;
  close(): void;
}

/** Milliseconds after which a shell that has nothing to do is ended. */
const idleMs = 15_000;

interface Idle {
  readonly client: SshClient;
  readonly worker: Worker;
  readonly timer: NodeJS.Timeout;
}

export function createWorkers(): Workers {
  const idle: Idle[] = [];
  let closed = false;

  function drop(one: Idle): void {
    clearTimeout(one.timer);
    idle.splice(idle.indexOf(one), 1);
  }

  return {
    async take(call, client) {
      for (const one of idle.toReversed()) {
        if (one.worker.isEnded()) drop(one);
        else if (one.client === client) {
          drop(one);
          return one.worker;
        }
      }
      return createWorker(await openChannel(call, client));
    },
    giveBack(client, worker) {
      if (closed) return worker.close();
      const timer = setTimeout(() => {
        drop(one);
        worker.close();
      }, idleMs);
      timer.unref();
      const one = { client, worker, timer };
      idle.push(one);
    },
    close() {
      closed = true;
      for (const one of [...idle]) {
        drop(one);
        one.worker.close();
      }
    },
  };
}

/** sshd counts a session until it has buried its process, which is a moment after the session's end. */
async function openChannel(call: Pick<CallContext, 'signal'>, client: SshClient) {
  for (const pause of [50, 200, 800]) {
    try {
      return await client.exec(workerCommand);
    } catch (error) {
      if (!(error instanceof ChannelRefused)) throw error;
    }
    await sleep(pause, undefined, { signal: call.signal }).catch(() => {
      throw reasonOf(call.signal);
    });
  }
  return await client.exec(workerCommand);
}
