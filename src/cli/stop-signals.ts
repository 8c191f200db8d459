/** The signals that stop a server. */
import type { Logger } from '../core/logger.ts';

export interface StopSignals {
  /** Resolves with the name of the first SIGTERM or SIGINT. */
  readonly first: Promise<string>;
  /** Resolves with the second: somebody is impatient. */
  readonly second: Promise<string>;
  stop(): void;
}

export function stopSignals(log: Logger): StopSignals {
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  let count = 0;
  const onStop = (signal: string) => (++count === 1 ? first : second).resolve(signal);
  // Without a listener a closed terminal, or an operator used to daemons, would end the process.
  const onHangup = () => log.info('SIGHUP: nothing to do, connection files are looked at on every use');
  process.on('SIGTERM', onStop).on('SIGINT', onStop).on('SIGHUP', onHangup);
  return {
    first: first.promise,
    second: second.promise,
    stop() {
      process.off('SIGTERM', onStop).off('SIGINT', onStop).off('SIGHUP', onHangup);
    },
  };
}
