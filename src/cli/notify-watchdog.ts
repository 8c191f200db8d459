/** Signs of life for the service manager's watchdog. */
import { asCallError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Notify } from './notify.ts';

export interface WatchdogOptions {
  /** The service manager's patience in milliseconds. */
  readonly watchdogMs: number;
  readonly notify: Notify;
  /** Rejects when the process had better start anew. Aborted when it takes longer than the interval. */
  readonly check: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/**
 * Tells that all is well at half the time that the service manager waits, as sd_watchdog_enabled(3) advises, if the check passes. A process
 * whose event loop stands still tells nothing either. What was found wrong is the status that `systemctl status` shows. Returns how to stop.
 */
export function startWatchdog({ watchdogMs, notify, check, log }: WatchdogOptions): () => void {
  const intervalMs = watchdogMs / 2;
  let isBusy = false;
  let isIll = false;

  async function look(): Promise<void> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), intervalMs);
    try {
      await Promise.race([check(limit.signal), overLimit(limit.signal, intervalMs)]);
      await notify(isIll ? { WATCHDOG: '1', STATUS: 'Serving again' } : { WATCHDOG: '1' });
      isIll = false;
    } catch (error) {
      const { message } = asCallError(error);
      log.error('the self-check failed; without a sign of life the service manager starts the server anew', {
        error: message,
      });
      isIll = true;
      await notify({ STATUS: `The self-check failed: ${message}` });
    } finally {
      clearTimeout(timer);
    }
  }

  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    void look().finally(() => {
      isBusy = false;
    });
  }, intervalMs);
  return () => clearInterval(timer);
}

function overLimit(signal: AbortSignal, ms: number): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`it did not end within ${ms / 1000} s`)), { once: true });
  });
}
