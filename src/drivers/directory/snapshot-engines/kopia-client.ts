/**
 * A connection of kopia to its repository: a private folder on the host with the configuration, the cache and the logs of this driver alone, so that
 * neither the user's own kopia nor another connection's is touched. It holds the repository's credentials and is removed in the end.
 */
import { posix } from 'node:path';
import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import type { Command, CommandOutput } from '../../../backends/exec/run.ts';
import { processTimeLimits } from '../../../backends/exec/time-limits.ts';
import { CallError } from '../../../core/errors.ts';
import type { Call, Directory } from '../directory.ts';
import { programEnvironment, withoutSecrets } from './program-environment.ts';

export type KopiaCommand = Pick<Command, 'keepBytes'> & {
  /** The words of the command, such as `snapshot list`. */
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly timeoutMs?: number;
};

export interface KopiaClient {
  /** Runs a command, connected. Throws {@link CallError} without secrets; what kopia said is in the message. */
  run(call: Call, command: KopiaCommand): Promise<CommandOutput>;
  /** Removes what it keeps on the host. */
  close(): Promise<void>;
}

/** Removing a folder of a few files. */
const removalLimitMs = 30_000;

export function createKopiaClient({ run, options, party, log }: Directory): KopiaClient {
  const { config_token: token, global_flags: flags = [], env: configured } = options.snapshots.kopia ?? {};
  const env = programEnvironment(process.env, configured);
  const secrets = { ...env, ...(token && { KOPIA_TOKEN: token }) };
  let folder: string | undefined;
  let connected: Promise<string> | undefined;

  async function kopia(
    call: Call,
    place: string,
    command: Pick<Command, 'args' | 'timeoutMs' | 'input' | 'keepBytes'>,
  ) {
    const own = {
      KOPIA_CONFIG_PATH: posix.join(place, 'repository.config'),
      KOPIA_CACHE_DIRECTORY: posix.join(place, 'cache'),
      KOPIA_LOG_DIR: posix.join(place, 'logs'),
      KOPIA_CHECK_FOR_UPDATES: 'false',
    };
    try {
      return await run(call, { ...command, program: 'kopia', env: { ...env, ...own } });
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      throw explained(error, withoutSecrets(error.stderr, secrets));
    }
  }

  /** The folder. */
  async function connect(call: Call): Promise<string> {
    if (!token) {
      throw new CallError(
        'FAILED_PRECONDITION',
        'kopia is not told where its repository is: set snapshots.kopia.config_token',
      );
    }
    const made = await run(call, {
      program: 'mktemp',
      env: env.TMPDIR === undefined ? {} : { TMPDIR: env.TMPDIR },
      args: ['-d', '-t', 'kopia.XXXXXXXXXX'],
      timeoutMs: removalLimitMs,
    });
    folder = made.stdout.trim();
    const identity = ['--override-hostname', party.host, '--override-username', 'democratic-csi'];
    await kopia(call, folder, {
      args: ['repository', 'connect', ...flags, ...identity, 'from-config', '--token-stdin'],
      timeoutMs: processTimeLimits().kopia,
      input: `${token}\n`,
    });
    return folder;
  }

  async function disconnect(): Promise<void> {
    const place = folder;
    folder = undefined;
    connected = undefined;
    if (place === undefined) return;
    const call = { signal: AbortSignal.timeout(removalLimitMs), log };
    await run(call, { program: 'rm', args: ['-rf', '--', place], timeoutMs: removalLimitMs }).catch(
      (error: unknown) => {
        log.warn('the folder of a kopia connection, which holds credentials, could not be removed', {
          folder: place,
          error,
        });
      },
    );
  }

  /** Whoever comes first connects for all; that he was called off, or had no luck, is not the others' failure. */
  async function whenConnected(call: Call): Promise<string> {
    for (;;) {
      const isFirst = connected === undefined;
      connected ??= connect(call).catch(async (error: unknown) => {
        await disconnect();
        throw error;
      });
      try {
        return await connected;
      } catch (error) {
        if (isFirst || call.signal.aborted) throw error;
      }
    }
  }

  return {
    async run(call, { command, args, timeoutMs = processTimeLimits().kopia, keepBytes }) {
      const place = await whenConnected(call);
      return await kopia(call, place, { args: [...command, ...flags, ...args], timeoutMs, keepBytes });
    },
    close: disconnect,
  };
}

function explained(error: CommandFailed, said: string): CallError {
  if (/unknown long flag '--token-stdin'/.test(said)) {
    return new CallError(
      'FAILED_PRECONDITION',
      'the host has a kopia before 0.13, which takes its token as an argument only: update it',
    );
  }
  if (/invalid repository password|unable to decode token|malformed token|invalid token/i.test(said)) {
    return new CallError(
      'FAILED_PRECONDITION',
      `kopia does not get into its repository with this config_token: ${said}`,
    );
  }
  const unreachable = /dial tcp|connection refused|no such host|timeout|i\/o error|can't connect to storage/i;
  const code = error.code === 'INTERNAL' && unreachable.test(said) ? 'UNAVAILABLE' : error.code;
  return new CallError(code, `\`kopia\` failed (exit ${error.exitCode ?? error.signal}): ${said || 'it said nothing'}`);
}
