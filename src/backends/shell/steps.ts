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
  /** Commands for the script's own shell in place of a program, which has to be started: `argv` are then their arguments, and `return` ends them. */
  readonly body?: string | undefined;
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

export type Steps = readonly [Step, ...Step[]];
export type StepResults = readonly [StepResult, ...StepResult[]];

export interface StepsOptions extends Omit<ShellScript, 'text'> {
  /** Run before everything else, and nothing else is when its code is not 0: `refused` then makes the error of what it said. */
  readonly guard?: { readonly step: Step; refused(result: StepResult): CallError } | undefined;
}

/** What came of an attempt. */
export interface Attempt {
  /** Of the steps that ran. */
  readonly results: StepResults;
  /** Of the others, which ran because one of the steps ended with a code that does not allow the next. */
  readonly otherwise?: StepResults | undefined;
}

/**
 * Runs steps until one ends with a code that does not allow the next. The results are of those that ran, in order: at least one. Throws as
 * {@link Shell.run} does, UNAVAILABLE also when the shell ended before the steps did, RESOURCE_EXHAUSTED when they said more than is kept.
 */
export async function runSteps(
  call: CallContext,
  shell: Shell,
  steps: Steps,
  options: StepsOptions,
): Promise<StepResults> {
  const { results } = await attemptSteps(call, shell, steps, undefined, options);
  return results;
}

/**
 * The same; and in the same round trip it runs other steps when one of the first, be it the last, ended with a code that does not allow another
 * one.
 */
export async function attemptSteps(
  call: CallContext,
  shell: Shell,
  steps: Steps,
  otherwise: Steps | undefined,
  { title, timeoutMs, onStderr, guard }: StepsOptions,
): Promise<Attempt> {
  const mark = randomBytes(12).toString('hex');
  const text = [
    locale,
    guard ? groupText([guard.step], `${mark}g`, 'exit 0') : '',
    otherwise
      ? `the_attempt() {\n${groupText(steps, mark, 'return 1')}}\nthe_attempt && exit 0\n`
      : groupText(steps, mark, 'exit 0'),
    otherwise ? groupText(otherwise, `${mark}o`, 'exit 0') : '',
    'exit 0\n',
  ].join('');
  const output = await shell.run(call, { text, title, timeoutMs, onStderr });
  if (output.truncated) {
    throw new CallError('RESOURCE_EXHAUSTED', `${shell.host}: \`${title}\` said more than can be read`);
  }
  const found = readResults(output, mark);
  const refusal = found('g')[0];
  if (guard && refusal && refusal.code !== 0) throw guard.refused(refusal);
  const whole = (group: Steps, results: readonly StepResult[]): StepResults => {
    const [first, ...others] = results;
    const isOver = results.length === group.length || !goesOn(group[results.length - 1], results.at(-1));
    if (first && isOver) return [first, ...others];
    throw endedEarly(shell, title, output, mark);
  };
  const results = whole(steps, found(''));
  const isDone = results.length === steps.length && goesOn(steps.at(-1), results.at(-1));
  return otherwise && !isDone ? { results, otherwise: whole(otherwise, found('o')) } : { results };
}

/** English messages, and names that are not ASCII: in the plain C locale, `zfs get -j` breaks off at the first of them. */
const locale = 'LC_ALL=C.UTF-8; export LC_ALL\n';

/** `over`: what is done when a code does not allow the next step. */
function groupText(steps: readonly Step[], mark: string, over: string): string {
  return steps.map((step, index) => stepText(step, index, mark, over)).join('');
}

function stepText(step: Step, index: number, mark: string, over: string): string {
  const { goOn } = step;
  const report = `printf '\\n%s %s\\n' ${mark} "$c"`;
  const codes = goOn ?? [0];
  const next = codes === 'any' ? '' : `case $c in ${codes.join('|')}) ;; *) ${over} ;; esac\n`;
  return `# ${index + 1}\n${commandText(step)}\nc=$?\n${report}\n${report} >&2\n${next}`;
}

function commandText({ argv, body, input, into }: Step): string {
  const command = argv.map(quote).join(' ');
  if (body !== undefined) return `the_step() {\n${body}\n}\nthe_step ${command} </dev/null`;
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

/** Gives the results of a group of steps. */
function readResults({ stdout, stderr }: ShellOutput, mark: string): (group: string) => readonly StepResult[] {
  const said = split(stderr, mark);
  const results = split(stdout, mark).map((part, index) => ({ ...part, stderr: said[index]?.stdout ?? '' }));
  return (group) => results.filter((one) => one.group === group).map(({ group: _, ...result }) => result);
}

function split(stream: string, mark: string): readonly (Omit<StepResult, 'stderr'> & { readonly group: string })[] {
  const parts: { group: string; code: number; stdout: string }[] = [];
  let from = 0;
  for (const found of stream.matchAll(new RegExp(`\\n${mark}([go]?) (\\d+)\\n`, 'g'))) {
    const [text, group = '', code] = found;
    parts.push({ group, code: Number(code), stdout: stream.slice(from, found.index) });
    from = found.index + text.length;
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
