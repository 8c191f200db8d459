/** Running restic: its environment, its errors, and the making of a repository where there is none. */
import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import type { Command, CommandOutput } from '../../../backends/exec/run.ts';
import { processTimeLimits } from '../../../backends/exec/time-limits.ts';
import { CallError } from '../../../core/errors.ts';
import type { Call, Directory } from '../directory.ts';
import { programEnvironment, withoutSecrets } from './program-environment.ts';

export type ResticCommand = Pick<Command, 'accept' | 'takeLine' | 'keepBytes'> & {
  readonly args: readonly string[];
  /** Default: the limit for commands that copy nothing. */
  readonly timeoutMs?: number;
  /** Variables of this command. */
  readonly env?: Readonly<Record<string, string>>;
};

export type RunRestic = (call: Call, command: ResticCommand) => Promise<CommandOutput>;

/** Throws {@link CallError} without secrets; `NO_REPOSITORY` is the cause of one that says there is no repository. */
export function createResticCommand({ run, options }: Directory): RunRestic {
  const { env: configured, global_flags: flags = [] } = options.snapshots.restic ?? {};
  const env = { RESTIC_PROGRESS_FPS: '1', ...programEnvironment(process.env, configured) };

  return async (call, command) => {
    try {
      return await run(call, {
        timeoutMs: processTimeLimits().restic,
        ...command,
        program: 'restic',
        args: [...command.args, ...flags],
        env: { ...env, ...command.env },
      });
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      throw explained(error, withoutSecrets(error.stderr, env));
    }
  };
}

/** The repository is not there, or nothing is that looks like one. */
export class NoRepository extends CallError {}

/** There is nobody whom restic lets do this now. */
export class RepositoryLocked extends CallError {}

function explained(error: CommandFailed, said: string): CallError {
  // 10, 11 and 12 are restic's own since 0.17.
  if (error.exitCode === 12 || /wrong password or no key found/i.test(said)) {
    return new CallError(
      'FAILED_PRECONDITION',
      'restic does not get into its repository: the password is wrong (RESTIC_PASSWORD, in snapshots.restic.env)',
    );
  }
  if (/specify (?:a )?repository location|RESTIC_REPOSITORY/i.test(said)) {
    return new CallError(
      'FAILED_PRECONDITION',
      'restic is not told where its repository is: set RESTIC_REPOSITORY and RESTIC_PASSWORD in snapshots.restic.env',
    );
  }
  if (/empty password|password.*(?:not|no).*(?:given|specified)|cannot (?:open|read) password/i.test(said)) {
    return new CallError(
      'FAILED_PRECONDITION',
      'restic is not given a password: set RESTIC_PASSWORD in snapshots.restic.env',
    );
  }
  if (error.exitCode === 11 || /already locked/i.test(said)) {
    return new RepositoryLocked('ABORTED', `the restic repository is locked; try again later: ${said}`);
  }
  const missing = /does not exist|no such file or directory|not found|NoSuchKey|NoSuchBucket|404/i;
  if (error.exitCode === 10 || (/unable to open (?:config|repository)/i.test(said) && missing.test(said))) {
    return new NoRepository('FAILED_PRECONDITION', `there is no restic repository: ${said}`);
  }
  const unreachable =
    /unable to open (?:config|repository)|dial tcp|connection refused|no such host|timeout|i\/o error/i;
  const code = error.code === 'INTERNAL' && unreachable.test(said) ? 'UNAVAILABLE' : error.code;
  return new CallError(
    code,
    `\`restic\` failed (exit ${error.exitCode ?? error.signal}): ${said || 'it said nothing'}`,
  );
}
