/** The service manager that started this process, if it wants to be told how things are: systemd with `Type=notify`. */
import { createRunner } from '../backends/exec/runner.ts';
import type { Logger } from '../core/logger.ts';
import { createNotify } from './notify.ts';
import { takeNotifySettings } from './notify-settings.ts';
import { startWatchdog } from './notify-watchdog.ts';
import { selfCheck } from './self-check.ts';
import type { Shell } from './shell.ts';

export interface ServiceManager {
  /** Clients can connect to these addresses. From now on the watchdog is kept quiet. */
  ready(addresses: readonly string[]): void;
  /** The end has begun. Resolves when it has been told, within a bounded time. */
  stopping(callsInFlight: number): Promise<void>;
  /** No more signs of life. */
  stop(): void;
}

/** One that does nothing where nobody wants to be told. */
export function serviceManager(env: Shell['env'], log: Logger): ServiceManager {
  const settings = takeNotifySettings();
  if (settings === undefined) return { ready: () => {}, stopping: async () => {}, stop: () => {} };
  const { socket, watchdogMs } = settings;
  const notify = createNotify(socket, createRunner({ env }), log);
  let stopWatchdog = () => {};
  return {
    ready(addresses) {
      void notify({ READY: '1', STATUS: `Serving on ${addresses.join(', ')}` });
      if (watchdogMs === undefined) return;
      stopWatchdog = startWatchdog({ watchdogMs, notify, log, check: (signal) => selfCheck(addresses, signal) });
    },
    stopping(callsInFlight) {
      // Its patience ends with the stop timeout now, and the sockets that the check uses are closed.
      stopWatchdog();
      return notify({ STOPPING: '1', STATUS: `Stopping; calls still in flight: ${callsInFlight}` });
    },
    stop: () => stopWatchdog(),
  };
}
