import { connect, isIP } from 'node:net';
import { errnoOf } from '../../../core/errors.ts';
import { within } from '../../../core/within.ts';
import type { Portal } from './portal.ts';

/** Milliseconds in which a portal that is there takes a connection, on however busy a network. */
const patienceMs = 3000;

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'has no route to it',
};

/** Milliseconds that the others get when one is enough and has answered. */
const politenessMs = 300;

/**
 * Why nothing listens, for each portal; undefined: something does, or only iscsid can tell. With `first`, portals that are slower than another
 * are not waited for.
 */
export async function whyUnreachable(
  portals: readonly Portal[],
  signal: AbortSignal,
  which: 'all' | 'first',
): Promise<readonly (string | undefined)[]> {
  const over = new AbortController();
  const probes = portals.map((portal) => whyNot(portal, AbortSignal.any([signal, over.signal])));
  const all = Promise.all(probes);
  if (which === 'first') {
    const answered = probes.map(async (probe) =>
      (await probe) === undefined ? undefined : Promise.reject(new Error()),
    );
    await Promise.race([all, Promise.any(answered).catch(() => all)]);
    await within(politenessMs, all);
    over.abort();
  }
  return await all;
}

/**
 * Why nothing listens at a portal; undefined: something does, or only iscsid can tell. iscsid itself would try for as long as its settings say, also
 * after nobody waits for it any more. Names are not looked up: a name server that is gone would hold a thread.
 */
function whyNot({ host, port }: Portal, signal: AbortSignal): Promise<string | undefined> {
  if (!isIP(host)) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (answer: string | undefined) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(answer);
    };
    const onAbort = () => end('is slower to answer than another one');
    socket.setTimeout(patienceMs, () => end('does not answer'));
    socket.once('connect', () => end(undefined));
    socket.once('error', (error) => {
      const errno = errnoOf(error) ?? error.message;
      end(reasons[errno] ?? `cannot be connected to (${errno})`);
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
