/** A host over SSH: connected when it is needed, again after it was lost, and with pauses while that fails. */
import type { CallContext } from '../../core/call.ts';
import { throwIfOver, untilOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { connectSsh, type SshClient } from './client.ts';
import type { SshSettings } from './settings.ts';

/** Milliseconds after a failure in which no other attempt is made: doubled with each failure. */
const firstPause = 1000;
const longestPause = 30_000;

export interface SshConnection {
  /**
   * The live connection, made if need be. All callers share one attempt. Throws what the attempt failed with: again at once, and without another
   * attempt, for a pause after it.
   */
  client(call: Pick<CallContext, 'signal' | 'log' | 'waitingFor'>): Promise<SshClient>;
  close(): void;
}

export function createSshConnection(settings: SshSettings, now: () => number = Date.now): SshConnection {
  const { host } = settings;
  let current: Promise<SshClient> | undefined;
  let failure: { readonly error: CallError; readonly until: number } | undefined;
  let pause = firstPause;
  let closed = false;

  async function attempt(log: CallContext['log']): Promise<SshClient> {
    try {
      const client = await connectSsh(settings);
      failure = undefined;
      pause = firstPause;
      if (closed) client.close();
      void client.over.then((why) => {
        current = undefined;
        if (!closed) log.warn('an SSH connection was lost', { host, error: why.message });
      });
      return client;
    } catch (error) {
      current = undefined;
      const why = error instanceof CallError ? error : new CallError('UNAVAILABLE', `${host}: ${error}`);
      failure = { error: why, until: now() + pause };
      log.warn('a host cannot be reached over SSH', { host, error: why.message, nextAttemptInMs: pause });
      pause = Math.min(pause * 2, longestPause);
      throw why;
    }
  }

  return {
    async client(call) {
      throwIfOver(call.signal);
      if (closed) throw new CallError('UNAVAILABLE', `the SSH connection to ${host} is closed`);
      if (!current && failure && now() < failure.until) {
        const seconds = Math.ceil((failure.until - now()) / 1000);
        throw new CallError(failure.error.code, `${failure.error.message} (tried again in ${seconds} s)`);
      }
      current ??= attempt(call.log);
      const joined = current;
      return await call.waitingFor(`an SSH connection to ${host}`, () => untilOver(call.signal, joined));
    },
    close() {
      closed = true;
      current?.then(
        (client) => client.close(),
        () => {},
      );
    },
  };
}
