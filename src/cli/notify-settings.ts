/** What the service manager wants to be told, from the variables of sd_notify(3) and sd_watchdog_enabled(3). */

export interface NotifySettings {
  /** The datagram socket that takes notifications: a path, or `@` and an abstract name. */
  readonly socket: string;
  /** The service manager ends a process that it has not heard of for this many milliseconds. */
  readonly watchdogMs?: number | undefined;
}

const variables = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const;

/** Undefined when nobody listens. The variables are removed: a child that found them could speak for this process. */
export function takeNotifySettings(
  environment: NodeJS.ProcessEnv = process.env,
  pid = process.pid,
): NotifySettings | undefined {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: owner } = environment;
  for (const variable of variables) delete environment[variable];
  if (!socket) return undefined;
  const isOurs = owner === undefined || owner === '' || owner === String(pid);
  const watchdogMs = /^\d+$/.test(microseconds) && isOurs ? Number(microseconds) / 1000 : 0;
  return watchdogMs > 0 ? { socket, watchdogMs } : { socket };
}
