/** One script on one channel of an SSH connection. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientChannel } from 'ssh2';
import type { CallContext } from '../../core/call.ts';
import { reasonOf } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { within } from '../../core/within.ts';
import { collectOutput } from '../exec/bounded-output.ts';
import { type ShellOutput, type ShellScript, shellOutputLimit } from '../shell/shell.ts';
import { ChannelRefused, type SshClient } from './client.ts';

/** Milliseconds that the watch has for ending the script: five seconds pass between its SIGTERM and its SIGKILL. */
const endMs = 8000;

/**
 * Runs it to its end. When the call is over, its time limit passes or the connection is lost, the remote script is ended with all that it started.
 */
export async function runScript(
  call: Pick<CallContext, 'signal'>,
  client: SshClient,
  host: string,
  script: ShellScript,
): Promise<ShellOutput> {
  const channel = await openChannel(call, client);
  const stdout = collectOutput(channel, shellOutputLimit);
  const stderr = collectOutput(channel.stderr, shellOutputLimit);
  const { onStderr } = script;
  if (onStderr) channel.stderr.on('data', (chunk: Buffer) => onStderr(chunk.toString('utf8')));
  channel.on('error', () => {});

  const ended = ending(channel);
  channel.write(watched(script.text));

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
    const first = await Promise.race([ended, stopped, client.over]);
    if (first instanceof CallError) {
      if (over.signal.aborted) await endRemote(channel, ended);
      throw over.signal.aborted ? first : lost(host, script, first);
    }
    // Without an exit code or signal the channel was torn down from the other end.
    if (first.code === null && first.signal === null) {
      throw lost(host, script, new CallError('UNAVAILABLE', 'the channel was closed'));
    }
    return {
      ...first,
      stdout: stdout.text(),
      stderr: stderr.text(),
      truncated: stdout.truncated() || stderr.truncated(),
    };
  } finally {
    clearTimeout(limit);
    call.signal.removeEventListener('abort', onAbort);
    channel.end();
  }
}

/** Through `exec`, so that the shell leads the process group; the script is not on a command line, which the login shell would read first. */
const shell = 'exec /bin/sh -s';

/** sshd counts a session until it has buried its process, which is a moment after the session's end. */
async function openChannel(call: Pick<CallContext, 'signal'>, client: SshClient): Promise<ClientChannel> {
  for (const pause of [50, 200, 800]) {
    try {
      return await client.exec(shell);
    } catch (error) {
      if (!(error instanceof ChannelRefused)) throw error;
    }
    await sleep(pause, undefined, { signal: call.signal }).catch(() => {
      throw reasonOf(call.signal);
    });
  }
  return await client.exec(shell);
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

function ending(channel: ClientChannel): Promise<Exit> {
  return new Promise((resolve) => {
    let exit: Exit = { code: null, signal: null };
    channel.on('exit', (code: number | null, signal?: string) => {
      exit = { code, signal: signal?.replace(/^SIG/, '') ?? null };
    });
    channel.once('close', () => resolve(exit));
  });
}

/** The end of its input ends the remote script. */
async function endRemote(channel: ClientChannel, ended: Promise<Exit>): Promise<void> {
  channel.end();
  await within(endMs, ended);
  channel.close();
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

/**
 * The script, and beside it a watch on standard input, which ends when the channel does: signals of SSH (RFC 4254, 6.9) are not for root on OpenSSH,
 * and nothing else tells of a lost connection. sshd makes the shell the leader of a process group of its own, so `kill 0` ends the script and what it
 * started. The braces make the shell read everything before it begins.
 */
function watched(text: string): string {
  return `{
exec 3<&0 </dev/null
{ while read -r line; do :; done; trap '' TERM; kill -TERM 0; sleep 5; kill -KILL 0; } <&3 >/dev/null 2>&1 &
watch=$!
exec 3<&-
trap 'kill -KILL "$watch"' EXIT
${text}
exit
}
`;
}
