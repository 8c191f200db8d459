import { CommandFailed } from '../backends/exec/command-failed.ts';
import { CallError, oneLine, type StatusCode } from '../core/errors.ts';
import type { ShareFamily } from './share-source.ts';

interface Rule {
  readonly said: RegExp;
  readonly code: StatusCode;
  /** What to do about it. */
  readonly advice?: string;
}

/** Before the texts of the programs' own, which are less exact: a helper that is missing is told as a wrong option. */
const common: readonly Rule[] = [
  {
    said: /you might need a \/sbin\/mount|helper program|unknown filesystem type|filesystem not supported|not configured in kernel/i,
    code: 'FAILED_PRECONDITION',
    advice: 'install the mount program of this file system on the node and load its kernel module',
  },
];

/** mount.nfs(8) has one exit code for everything, so its text decides; nfs-utils, utils/mount/error.c. */
const nfs: readonly Rule[] = [
  {
    said: /statd/i,
    code: 'FAILED_PRECONDITION',
    advice: 'start rpc.statd on the node, or use NFS 4 or the mount flag nolock',
  },
  {
    said: /access denied by server/i,
    code: 'PERMISSION_DENIED',
    advice: 'the server has no such export, or not for this node',
  },
  { said: /no such file or directory|does not exist/i, code: 'NOT_FOUND' },
  { said: /permission denied|operation not permitted/i, code: 'PERMISSION_DENIED' },
  { said: /timed out|timeout/i, code: 'DEADLINE_EXCEEDED' },
  {
    said: /refused|no route|unreachable|host is down|reset by peer|stale|input\/output|protocol error|temporarily unavailable|temporary failure|resolve|not known|no address|no error/i,
    code: 'UNAVAILABLE',
  },
  { said: /incorrect mount option|bad option|invalid argument|bad nfs mount|parsing/i, code: 'INVALID_ARGUMENT' },
  {
    said: /not supported/i,
    code: 'FAILED_PRECONDITION',
    advice: 'the server may be down, or not have this version of NFS (mount flag vers=)',
  },
  { said: /busy|already mounted/i, code: 'FAILED_PRECONDITION' },
];

/** mount.cifs(8) tells the kernel's error number. The numbers of the Linux ABI. */
const smbCodes: Readonly<Record<number, StatusCode>> = {
  1: 'PERMISSION_DENIED',
  2: 'NOT_FOUND',
  5: 'UNAVAILABLE',
  6: 'NOT_FOUND',
  11: 'UNAVAILABLE',
  12: 'RESOURCE_EXHAUSTED',
  13: 'PERMISSION_DENIED',
  16: 'FAILED_PRECONDITION',
  19: 'FAILED_PRECONDITION',
  20: 'NOT_FOUND',
  22: 'INVALID_ARGUMENT',
  95: 'FAILED_PRECONDITION',
  101: 'UNAVAILABLE',
  104: 'UNAVAILABLE',
  110: 'DEADLINE_EXCEEDED',
  111: 'UNAVAILABLE',
  112: 'UNAVAILABLE',
  113: 'UNAVAILABLE',
  115: 'DEADLINE_EXCEEDED',
  126: 'PERMISSION_DENIED',
  127: 'PERMISSION_DENIED',
  128: 'PERMISSION_DENIED',
  129: 'PERMISSION_DENIED',
};

const smbAdvice: Readonly<Record<number, string>> = {
  1: 'the server refuses this account, or the node may not mount',
  2: 'the server has no such share or folder',
  6: 'the server has no such share',
  13: 'the server refuses this account',
  22: 'is a mount flag wrong?',
  95: 'the server may not have this version of SMB (mount flag vers=)',
  126: 'there is no Kerberos ticket for it',
};

const smb: readonly Rule[] = [
  { said: /resolve address|could not connect|unable to find suitable/i, code: 'UNAVAILABLE' },
  { said: /credential file/i, code: 'FAILED_PRECONDITION' },
  { said: /permission denied/i, code: 'PERMISSION_DENIED' },
];

const rules: Readonly<Record<ShareFamily, readonly Rule[]>> = { nfs, smb, lustre: nfs };

/**
 * What a failed mount of a share means, from what its mount program said: DEADLINE_EXCEEDED when the server was silent, UNAVAILABLE when it
 * could not be reached, and so on. Errors that are not a program's pass as they are.
 */
export function shareFailure(family: ShareFamily, title: string, error: unknown): unknown {
  if (error instanceof CallError && error.code === 'DEADLINE_EXCEEDED') {
    const text = `${title} cannot be mounted: its server does not answer (${error.message})`;
    return new CallError('DEADLINE_EXCEEDED', text, { cause: error });
  }
  if (!(error instanceof CommandFailed)) return error;
  const said = essence(error.stderr);
  const errno = Number(/mount error\((\d+)\)/.exec(said)?.[1]);
  const rule = [...common, ...rules[family]].find((one) => one.said.test(said));
  const own = family === 'smb' ? smbCodes[errno] : undefined;
  const code = own ?? rule?.code ?? error.code;
  const advice = own ? smbAdvice[errno] : rule?.advice;
  const text = `${title} cannot be mounted: ${said || `exit ${error.exitCode ?? error.signal}`}`;
  return new CallError(code, advice ? `${text}; ${advice}` : text, { cause: error });
}

/** Without what is the same for all errors, or speaks of paths that the reader knows. */
function essence(said: string): string {
  const short = said
    .replace(/Refer to the \S+ manual page.*$/i, '')
    .replace(/Unable to find suitable address\.?/i, '')
    .replaceAll(/mount\.(nfs4?|cifs|lustre): /g, '');
  return oneLine(short, 300);
}
