/** The signals that stop a server, and the one that makes it look at its files. */
import type { Logger } from '../core/logger.ts';

export interface StopSignals {
  /** Resolves with the name of the first SIGTERM or SIGINT. */
  readonly first: Promise<string>;
  /** Resolves with the second: somebody is impatient. */
  readonly second: Promise<string>;
  /** What SIGHUP does from now on. Until then it does nothing. */
  onHangup(action: () => void): void;
  stop(): void;
}

export function stopSignals(log: Logger): StopSignals {
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  let count = 0;
  const onStop = (signal: string) => (++count === 1 ? first : second).resolve(signal);
  let action = () => {};
  // Without a listener a closed terminal would end the process.
  const hangUp = () => {
    log.info('SIGHUP: looking at the connection files; the main file counts from the next start');
    action();
  };
  process.on('SIGTERM', onStop).on('SIGINT', onStop).on('SIGHUP', hangUp);
  return {
    first: first.promise,
    second: second.promise,
    onHangup(then) {
      action = then;
    },
    stop() {
      process.off('SIGTERM', onStop).off('SIGINT', onStop).off('SIGHUP', hangUp);
    },
  };
}
