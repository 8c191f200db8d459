/**
 * Several commands in one round trip: a script runs them one after the other and tells of each its exit code and what it said.
 */
import { randomBytes } from 'node:crypto';
import type { CallContext } from '../../core/call.ts';
import { CallError, oneLine } from '../../core/errors.ts';
import { quote } from './quote.ts';
import type { Shell, ShellOutput, ShellScript } from './shell.ts';

export interface Step {
  /** Program and arguments. */
  readonly argv: readonly string[];
  /** Exit codes after which the next step is run. Default: 0 only. `any`: it is run in any case. */
  readonly goOn?: readonly number[] | 'any' | undefined;
  /** Given to the program's standard input. Default: nothing. */
  readonly input?: string | undefined;
  /** Another program, which reads what the first writes. The step's code is its code; see {@link senderCode} for the first one's. */
  readonly into?: readonly string[] | undefined;
}

export interface StepResult {
  /** As the shell has it: 128 + n when signal n ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type StepsOptions = Omit<ShellScript, 'text'>;

/**
 * Runs steps until one ends with a code that does not allow the next. The results are of those that ran, in order: at least one. Throws as
 * {@link Shell.run} does, UNAVAILABLE also when the shell ended before the steps did, RESOURCE_EXHAUSTED when they said more than is kept.
 */
export async function runSteps(
  call: CallContext,
  shell: Shell,
  steps: readonly [Step, ...Step[]],
  options: StepsOptions,
): Promise<readonly [StepResult, ...StepResult[]]> {
  const mark = randomBytes(12).toString('hex');
  const { title, timeoutMs, onStderr } = options;
  const text = `${locale}${steps.map((step, index) => stepText(step, index, mark)).join('')}exit 0\n`;
  const output = await shell.run(call, { text, title, timeoutMs, onStderr });
  if (output.truncated) {
    throw new CallError('RESOURCE_EXHAUSTED', `${shell.host}: \`${title}\` said more than can be read`);
  }
  const results = readResults(output, mark);
  const [first, ...others] = results;
  if (!first || (results.length < steps.length && goesOn(steps[results.length - 1], results.at(-1)))) {
    throw endedEarly(shell, title, output, mark);
  }
  return [first, ...others];
}

/** English messages, and names that are not ASCII: in the plain C locale, `zfs get -j` breaks off at the first of them. */
const locale = 'LC_ALL=C.UTF-8; export LC_ALL\n';

function stepText(step: Step, index: number, mark: string): string {
  const { goOn } = step;
  const run = commandText(step);
  const report = `printf '\\n%s %s\\n' ${mark} "$c"`;
  const codes = goOn ?? [0];
  const next = codes === 'any' ? '' : `case $c in ${codes.join('|')}) ;; *) exit 0 ;; esac\n`;
  return `# ${index + 1}\n${run}\nc=$?\n${report}\n${report} >&2\n${next}`;
}

function commandText({ argv, input, into }: Step): string {
  const command = argv.map(quote).join(' ');
  if (into) {
    const receiver = into.map(quote).join(' ');
    return `{ { ${command} </dev/null 5>&-; printf '\\n${sender} %s\\n' "$?" >&5; } | ${receiver} 5>&-; } 5>&1`;
  }
  return input === undefined ? `${command} </dev/null` : `printf %s ${quote(input)} | ${command}`;
}

const sender = 'sender-ended-with';

/** With which code the first program of a step with `into` ended. */
export function senderCode({ stdout }: StepResult): number {
  return Number(new RegExp(`^${sender} (\\d+)$`, 'm').exec(stdout)?.[1] ?? Number.NaN);
}

function goesOn(step: Step | undefined, result: StepResult | undefined): boolean {
  if (!step || !result) return true;
  const codes = step.goOn ?? [0];
  return codes === 'any' || codes.includes(result.code);
}

function readResults({ stdout, stderr }: ShellOutput, mark: string): readonly StepResult[] {
  const said = split(stderr, mark);
  return split(stdout, mark).map(({ code, text }, index) => ({ code, stdout: text, stderr: said[index]?.text ?? '' }));
}

function split(stream: string, mark: string): readonly { readonly code: number; readonly text: string }[] {
  const parts: { code: number; text: string }[] = [];
  let from = 0;
  for (const found of stream.matchAll(new RegExp(`\\n${mark} (\\d+)\\n`, 'g'))) {
    parts.push({ code: Number(found[1]), text: stream.slice(from, found.index) });
    from = found.index + found[0].length;
  }
  return parts;
}

function endedEarly(shell: Shell, title: string, output: ShellOutput, mark: string): CallError {
  const how = output.signal === null ? `exit ${output.code}` : `ended by SIG${output.signal}`;
  const said = oneLine(output.stderr.split(mark).at(-1) ?? '') || oneLine(output.stdout.split(mark).at(-1) ?? '');
  return new CallError(
    'UNAVAILABLE',
    `${shell.host}: the shell ended in the middle of \`${title}\` (${how})${said ? `: ${said}` : ''}`,
  );
}
