/** Sockets that systemd opened and handed over: sd_listen_fds(3). */
import { once } from 'node:events';
import type { Server } from 'node:net';
import { CallError, oneLine } from '../../core/errors.ts';

/** The first file descriptor that is handed over. */
const firstDescriptor = 3;
const variables = ['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES', 'LISTEN_PIDFDID'] as const;

export interface InheritedSocket {
  readonly fd: number;
  /** `FileDescriptorName=` of the socket unit; empty when there is none. */
  readonly name: string;
}

/**
 * The sockets handed to this process, and the variables that told of them removed, so that no child takes them for its own. Empty when there are
 * none or when they are meant for another process.
 */
export function takeInheritedSockets(
  environment: NodeJS.ProcessEnv = process.env,
  pid = process.pid,
): readonly InheritedSocket[] {
  const { LISTEN_FDS: count = '', LISTEN_PID: owner, LISTEN_FDNAMES: names = '' } = environment;
  for (const variable of variables) delete environment[variable];
  if (owner !== String(pid)) return [];
  if (!/^\d{1,4}$/.test(count)) throw new CallError('INVALID_ARGUMENT', `LISTEN_FDS is "${count}", not a number`);
  const byPosition = names.split(':');
  return Array.from({ length: Number(count) }, (_, i) => ({ fd: firstDescriptor + i, name: byPosition[i] ?? '' }));
}

/** Starts `server` on an inherited socket. Its file, if it has one, stays systemd's. Throws FAILED_PRECONDITION when it is no stream socket. */
export async function openInherited(server: Server, { fd, name }: InheritedSocket): Promise<void> {
  try {
    const listening = once(server, 'listening');
    server.listen({ fd });
    await listening;
  } catch (error) {
    const reason = error instanceof Error ? oneLine(error.message) : String(error);
    throw new CallError(
      'FAILED_PRECONDITION',
      `the inherited socket ${name || fd} is not a listening stream socket (ListenStream=, Accept=no): ${reason}`,
      { cause: error },
    );
  }
}
