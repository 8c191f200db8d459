/** One script on an SSH connection. */
import type { CallContext } from '../../core/call.ts';
import { reasonOf } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { ShellOutput, ShellScript } from '../shell/shell.ts';
import type { SshClient } from './client.ts';
import type { Workers } from './workers.ts';

/**
 * Runs it to its end. When the call is over, its time limit passes or the connection is lost, the remote script is ended with all that it started.
 */
export async function runScript(
  call: Pick<CallContext, 'signal'>,
  client: SshClient,
  workers: Workers,
  host: string,
  script: ShellScript,
): Promise<ShellOutput> {
  const worker = await workers.take(call, client);
  const running = worker.run(script.text, script.onStderr);

  const over = new AbortController();
  const limit =
    script.timeoutMs === undefined
      ? undefined
      : setTimeout(() => over.abort(overLimit(host, script)), script.timeoutMs);
  const onAbort = () => over.abort(reasonOf(call.signal));
  call.signal.addEventListener('abort', onAbort, { once: true });
  if (call.signal.aborted) onAbort();
  try {
    const stopped = new Promise<CallError>((resolve) => {
      if (over.signal.aborted) resolve(over.signal.reason);
      over.signal.addEventListener('abort', () => resolve(over.signal.reason), { once: true });
    });
    const first = await Promise.race([running.end, stopped, worker.ended, client.over]);
    if (typeof first === 'number') {
      workers.giveBack(client, worker);
      return { code: first, signal: null, ...running.said() };
    }
    if (first instanceof CallError) {
      if (over.signal.aborted) await worker.stop();
      throw over.signal.aborted ? first : lost(host, script, first);
    }
    // Without an exit code or signal the channel was torn down from the other end.
    if (first.code === null && first.signal === null) {
      throw lost(host, script, new CallError('UNAVAILABLE', 'the channel was closed'));
    }
    return { ...first, ...running.said() };
  } finally {
    clearTimeout(limit);
    call.signal.removeEventListener('abort', onAbort);
  }
}

function overLimit(host: string, { title, timeoutMs = 0 }: ShellScript): CallError {
  return new CallError(
    'DEADLINE_EXCEEDED',
    `${host}: \`${title}\` did not finish within ${timeoutMs / 1000} s and was ended`,
  );
}

function lost(host: string, { title }: ShellScript, why: CallError): CallError {
  return new CallError(
    'UNAVAILABLE',
    `${host}: the connection was lost during \`${title}\`, which may have been done: ${why.message}`,
  );
}
