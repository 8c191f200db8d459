/** What a server does with an error that nobody caught. */
import { oneLine } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';

/** This many within {@link windowMs} are a loop, not an accident. */
const tooMany = 100;
const windowMs = 60_000;

/**
 * Logs uncaught errors, and warnings of Node.js, and goes on.
 *
 * Going on is the safer choice here: such an error comes from one connection's sockets or children, while the process also serves all the
 * others, and ending it breaks mounts and calls that have nothing to do with it. It loses nothing either: what matters is on the storage, every
 * operation can be repeated, and one that will never settle now ends by its time limit. Only a flood of errors ends the process, by rejecting
 * {@link Defects.fatal}: then something is broken that a new start may mend.
 */
export interface Defects {
  /** Rejects when the process had better end. Never resolves. */
  readonly fatal: Promise<never>;
  stop(): void;
}

export function surviveDefects(log: Logger): Defects {
  const { promise: fatal, reject } = Promise.withResolvers<never>();
  fatal.catch(() => {});
  const replaced = events.map((event) => [event, process.listeners(event as 'uncaughtException')] as const);
  let recent: number[] = [];

  function survive(error: unknown): void {
    const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
    log.error('uncaught error; the server goes on', { error: oneLine(message) });
    if (stack !== undefined) log.debug('uncaught error', { stack });
    const now = performance.now();
    recent = [...recent.filter((time) => now - time < windowMs), now];
    if (recent.length >= tooMany) reject(new Error(`${tooMany} uncaught errors within a minute, the last: ${message}`));
  }

  const warn = ({ name, message }: Error) => log.warn(oneLine(message), { kind: name });

  for (const event of events) {
    process.removeAllListeners(event);
    process.on(event, survive);
  }
  process.on('warning', warn);
  return {
    fatal,
    stop() {
      process.off('warning', warn);
      for (const [event, listeners] of replaced) {
        process.removeListener(event, survive);
        for (const listener of listeners) process.on(event, listener);
      }
    },
  };
}

const events = ['uncaughtException', 'unhandledRejection'] as const;
