import { CallError, oneLine, type StatusCode } from '../../core/errors.ts';
import type { StepResult } from '../shell/steps.ts';

export type FailureKind =
  | 'exists'
  | 'missing'
  | 'busy'
  | 'has-children'
  | 'has-clones'
  | 'no-space'
  | 'refused'
  | 'suspended'
  | 'too-long'
  | 'read-only'
  | 'no-program'
  | 'other';

/** What the tools of OpenZFS say, in the C locale. Most are exit code 1. */
const sayings: readonly (readonly [FailureKind, RegExp])[] = [
  ['has-clones', /has dependent clones/],
  ['has-children', /has children|has dependents/],
  ['exists', /already exists|destination .* exists/],
  ['missing', /does not exist|no such pool or dataset|could not find any snapshots|no datasets available/],
  ['busy', /is busy|pool or dataset is busy/],
  ['no-space', /out of space|no space left|quota exceeded|exceeds available|size is greater than available/],
  ['suspended', /pool is suspended|I\/O is currently suspended|pool I\/O/],
  // How long the name of a block device may be depends on the system: 63 bytes on old ones of FreeBSD.
  ['too-long', /name (?:is )?too long/i],
  ['read-only', /pool is read-only|read-only file system/i],
  [
    'refused',
    /permission denied|must be root|must be superuser|a password is required|not in the sudoers|not allowed to/i,
  ],
  ['no-program', /command not found|: not found|no such file or directory/i],
];

const codes: Readonly<Record<FailureKind, StatusCode>> = {
  exists: 'ALREADY_EXISTS',
  missing: 'NOT_FOUND',
  busy: 'FAILED_PRECONDITION',
  'has-children': 'FAILED_PRECONDITION',
  'has-clones': 'FAILED_PRECONDITION',
  'no-space': 'RESOURCE_EXHAUSTED',
  suspended: 'UNAVAILABLE',
  'too-long': 'INVALID_ARGUMENT',
  'read-only': 'FAILED_PRECONDITION',
  refused: 'FAILED_PRECONDITION',
  'no-program': 'FAILED_PRECONDITION',
  other: 'INTERNAL',
};

/** In which way a command failed, by what it said. For decisions the state of the datasets counts: a text may change. */
export function failureKind({ code, stderr }: StepResult): FailureKind {
  const found = sayings.find(([, saying]) => saying.test(stderr))?.[0];
  if (found && found !== 'no-program') return found;
  return code === 126 || code === 127 ? 'no-program' : 'other';
}

/** Whether a command failed because what it was about is not there. */
export function isMissing(result: StepResult): boolean {
  return result.code !== 0 && failureKind(result) === 'missing';
}

/** The same of a command about several things: nothing else was wrong with any of them. */
export function saysOnlyMissing({ code, stderr }: StepResult): boolean {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  return (
    code !== 0 &&
    lines.length > 0 &&
    lines.every((line) => failureKind({ code, stdout: '', stderr: line }) === 'missing')
  );
}

/** The error of a command that failed: `nas1: zfs create tank/v1: cannot create 'tank/v1': out of space`. */
export class StepFailed extends CallError {
  readonly kind: FailureKind;

  constructor(host: string, title: string, result: StepResult) {
    const kind = failureKind(result);
    const said = oneLine(result.stderr) || oneLine(result.stdout) || `exit ${result.code}`;
    super(codes[kind], `${host}: \`${title}\`: ${said}`);
    this.kind = kind;
  }
}
