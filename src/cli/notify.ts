/** Telling the service manager how this process is: sd_notify(3). */
import type { RunCommand } from '../backends/exec/run.ts';
import { asCallError, oneLine } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';

/** Which variables of sd_notify(3) are set to what. */
export interface Notification {
  readonly READY?: '1';
  readonly STOPPING?: '1';
  readonly WATCHDOG?: '1';
  /** One line for people. */
  readonly STATUS?: string;
}

/** Resolves when the service manager has it, in the order of calls. Never rejects: a service goes on although nobody listens. */
export type Notify = (notification: Notification) => Promise<void>;

/** Milliseconds. `systemd-notify` itself waits up to 5 s until the service manager has read what it sent. */
const sendLimitMs = 10_000;

/**
 * Node.js has no datagram unix sockets, so each notification is a run of the host's `systemd-notify`, which comes with systemd and knows every
 * kind of address there is. It costs a few milliseconds of another process at start and stop and twice in a watchdog's time; a native module
 * would cost every start, and a bundle for each platform. The sender then is a child, so the unit needs `NotifyAccess=all`.
 *
 * `run` must reach programs directly: the socket belongs to this process's own root.
 */
export function createNotify(socket: string, run: RunCommand, log: Logger): Notify {
  let previous: Promise<void> = Promise.resolve();
  let isMute = false;

  async function send(notification: Notification): Promise<void> {
    const args = Object.entries(notification).map(([name, value]) => `${name}=${oneLine(value)}`);
    const call = { signal: new AbortController().signal, log };
    const env = { NOTIFY_SOCKET: socket };
    try {
      await run(call, { program: 'systemd-notify', args, env, timeoutMs: sendLimitMs });
      isMute = false;
    } catch (error) {
      // Once is enough: the watchdog would say it again and again.
      if (!isMute) log.warn('the service manager could not be told', { error: asCallError(error).message });
      isMute = true;
    }
  }

  return (notification) => {
    previous = previous.then(() => send(notification));
    return previous;
  };
}
