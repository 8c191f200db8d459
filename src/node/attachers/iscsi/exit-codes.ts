import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import { CallError } from '../../../core/errors.ts';

/** Exit codes of iscsiadm, iscsiadm(8). */
export const exitCodes = {
  loggedInAlready: 15,
  daemonSilent: 18,
  loginRefused: 19,
  daemonMissing: 20,
  noRecord: 21,
  notAuthorized: 24,
  notConnected: 32,
} as const;

export function exitCodeOf(error: unknown): number | null | undefined {
  return error instanceof CommandFailed ? error.exitCode : undefined;
}

/** Whether iscsiadm failed because there is no iscsid. Some of its modes say so in words only. */
export function isDaemonGone(error: unknown): boolean {
  if (!(error instanceof CommandFailed)) return false;
  if (error.exitCode === exitCodes.daemonSilent || error.exitCode === exitCodes.daemonMissing) return true;
  return /iscsi daemon|daemon died|to iscsid/i.test(error.stderr);
}

export function daemonGone(cause: unknown): CallError {
  return new CallError('FAILED_PRECONDITION', 'iscsid does not answer: start the service iscsid of this host', {
    cause,
  });
}
