import { connect, isIP } from 'node:net';
import { errnoOf } from '../../../core/errors.ts';
import type { Portal } from './portal.ts';

/** Milliseconds in which a portal that is there takes a connection, on however busy a network. */
const patienceMs = 3000;

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'has no route to it',
};

/**
 * Why nothing listens at a portal; undefined: something does, or only iscsid can tell. iscsid itself would try for as long as its settings say, also
 * after nobody waits for it any more. Names are not looked up: a name server that is gone would hold a thread.
 */
export function whyUnreachable({ host, port }: Portal, signal: AbortSignal): Promise<string | undefined> {
  if (!isIP(host)) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (answer: string | undefined) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(answer);
    };
    const onAbort = () => end(undefined);
    socket.setTimeout(patienceMs, () => end('does not answer'));
    socket.once('connect', () => end(undefined));
    socket.once('error', (error) => {
      const errno = errnoOf(error) ?? error.message;
      end(reasons[errno] ?? `cannot be connected to (${errno})`);
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
