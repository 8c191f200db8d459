/**
 * A shell on the server that runs one script after the other: to start a session takes an SSH server longer than most scripts take.
 */
import { randomBytes } from 'node:crypto';
import type { ClientChannel } from 'ssh2';
import { within } from '../../core/within.ts';
import { shellOutputLimit } from '../shell/shell.ts';
import { readSections } from './sections.ts';

/** How a channel ended: both null when it was torn down from the other end. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface WorkerRun {
  /** Settles with the script's exit code. */
  readonly end: Promise<number>;
  /** What it has said so far. */
  said(): { readonly stdout: string; readonly stderr: string; readonly truncated: boolean };
}

export interface Worker {
  /** Settles when there is no shell any more. */
  readonly ended: Promise<Exit>;
  isEnded(): boolean;
  /** One at a time. */
  run(text: string, onStderr: ((text: string) => void) | undefined): WorkerRun;
  /** Ends the script that runs, with all that it started, and the shell. */
  stop(): Promise<void>;
  /** Ends a shell that has nothing to do. */
  close(): void;
}

/** Milliseconds that the shell has for ending a script: five seconds pass between its SIGTERM and its SIGKILL. */
const stopMs = 8000;

/** Milliseconds for what a shell that has ended said to come in. */
const restMs = 1000;

/** Through `exec`, so that the shell leads the process group; no script is on a command line, which the login shell would read first. */
export const workerCommand = 'exec /bin/sh -s';

/**
 * What is written to the channel goes through `cat` to the shell that runs scripts. It ends when the channel does: signals of SSH (RFC 4254, 6.9) are
 * not for root on OpenSSH, and nothing else tells of a lost connection. sshd makes the first shell the leader of a process group of its own, so
 * `kill 0` ends all of it. That shell reads no more than this line; what follows is written when it is ready.
 */
const setUp = (mark: string) =>
  `{ cat; trap '' TERM; kill -TERM 0; sleep 5; kill -KILL 0; } | { printf '\\n%s 0\\n' ${mark}; /bin/sh -s; kill -KILL 0; }\n`;

/** The parentheses make the shell read everything before it begins, and keep what a script changes from the next one. */
const framed = (text: string, mark: string) => `(
${text}
) </dev/null
c=$?
printf '\\n%s %s\\n' ${mark} "$c"; printf '\\n%s %s\\n' ${mark} "$c" >&2
`;

/** Makes a worker of a channel on which {@link workerCommand} was started. */
export function createWorker(channel: ClientChannel): Worker {
  const stdout = readSections(channel, shellOutputLimit);
  const stderr = readSections(channel.stderr, shellOutputLimit);
  let tell: ((text: string) => void) | undefined;
  channel.stderr.on('data', (chunk: Buffer) => tell?.(chunk.toString('utf8')));
  channel.on('error', () => {});
  let isEnded = false;
  const ended = new Promise<Exit>((resolve) => {
    let exit: Exit = { code: null, signal: null };
    channel.on('exit', (code: number | null, signal?: string) => {
      exit = { code, signal: signal?.replace(/^SIG/, '') ?? null };
      isEnded = true;
      // What is left of a shell that somebody killed may keep the channel open.
      setTimeout(() => channel.close(), restMs).unref();
    });
    channel.once('close', () => {
      isEnded = true;
      resolve(exit);
    });
  });
  const newMark = () => randomBytes(12).toString('hex');
  const first = newMark();
  const ready = stdout.begin(first).end;
  channel.write(setUp(first));

  return {
    ended,
    isEnded: () => isEnded,
    run(text, onStderr) {
      const mark = newMark();
      const sections = ready.then(() => {
        const both = [stdout.begin(mark), stderr.begin(mark)] as const;
        tell = onStderr;
        channel.write(framed(text, mark));
        return both;
      });
      let begun: Awaited<typeof sections> | undefined;
      const end = sections.then(async (both) => {
        begun = both;
        const [code] = await Promise.all([both[0].end, both[1].end]);
        tell = undefined;
        return code;
      });
      return {
        end,
        said() {
          const [out, err] = begun ?? [];
          const truncated = out?.truncated() === true || err?.truncated() === true;
          return { stdout: out?.text() ?? '', stderr: err?.text() ?? '', truncated };
        },
      };
    },
    async stop() {
      channel.end();
      await within(stopMs, ended);
      channel.close();
    },
    close() {
      if (isEnded) return;
      channel.write('kill -KILL 0\n');
      // It has ended by then. The end of its input alone would leave a process behind for some seconds.
      setTimeout(() => channel.end(), restMs).unref();
    },
  };
}
