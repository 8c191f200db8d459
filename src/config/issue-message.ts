/**
 * What a valibot issue means to the person who edits the file: "expected …, found …".
 *
 * Messages given to valibot (`v.check(test, 'either a password or a private key')`) are what is expected: they follow the word "expected".
 */
import type { BaseIssue } from 'valibot';
import { nearestName } from './nearest-name.ts';
import type { Path } from './path.ts';
import { atPath } from './path.ts';
import { isMap } from './schema.ts';

/** Things to know about a value before it is shown. */
export interface Showing {
  readonly secret: boolean;
  /** The text with variables that the value comes from, such as `$PORT`. */
  readonly template: string | undefined;
}

/** The path of an issue within the document. */
export function pathOf(issue: BaseIssue<unknown>): Path {
  return (issue.path ?? []).map((item) => (typeof item.key === 'number' ? item.key : String(item.key)));
}

/** True when the issue is a key that must be there and is not. */
export function isMissingKey(issue: BaseIssue<unknown>): boolean {
  const last = issue.path?.at(-1);
  return issue.kind === 'schema' && issue.input === undefined && last?.type === 'object';
}

/** The issues behind a union's: of its options, the one that came furthest into the value is the one that was meant. */
export function innermost(issue: BaseIssue<unknown>): readonly BaseIssue<unknown>[] {
  const deeper = (issue.issues ?? []).filter((option) => (option.path?.length ?? 0) > 0);
  if (issue.type !== 'union' || deeper.length === 0 || hasOwnMessage(issue)) return [issue];
  const depth = Math.max(...deeper.map((option) => option.path?.length ?? 0));
  const meant = deeper.filter((option) => option.path?.length === depth);
  return meant
    .map((option) => ({ ...option, path: [...(issue.path ?? []), ...(option.path ?? [])] }) as BaseIssue<unknown>)
    .flatMap(innermost);
}

export function issueMessage(issue: BaseIssue<unknown>, path: Path, showing: Showing): string {
  if (isMissingKey(issue) && issue.path?.at(-1)?.origin === 'key') {
    return `expected the key ${String(path.at(-1))}${atPath(path.slice(0, -1), 'in')}, found nothing`;
  }
  const about = `expected ${expectation(issue)}${atPath(path)}`;
  // A rule about a map as a whole: that it is a map says nothing.
  if (issue.kind !== 'schema' && typeof issue.input === 'object') return about;
  return `${about}, found ${found(issue.input, showing)}${suggestion(issue, showing)}`;
}

/** A value for people: short, on one line, and never a secret. */
export function found(value: unknown, { secret, template }: Showing): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (isMap(value)) return 'a map';
  if (template !== undefined) return `what ${JSON.stringify(shortened(template))} contains`;
  if (secret) return `a ${typeof value} (not shown: it is a secret)`;
  return typeof value === 'string' ? JSON.stringify(shortened(value)) : String(value);
}

/** The alternatives of a valibot expectation such as `("a" | "b" | undefined)`, without what stands for absence. */
export function alternatives(expected: string): readonly string[] {
  const tokens = expected.match(/"(?:[^"\\]|\\.)*"|[^\s()|]+/g) ?? [];
  return [...new Set(tokens)].filter((token) => token !== 'undefined' && token !== 'null');
}

const nouns: Readonly<Record<string, string>> = { Object: 'map', Array: 'list', Date: 'date' };

/** Expectations of valibot's checks, which it writes as symbols if at all. */
const checks: Readonly<Record<string, (requirement: string) => string>> = {
  integer: () => 'a whole number',
  safe_integer: () => 'a whole number',
  non_empty: () => 'something that is not empty',
  min_length: (n) => `a length of at least ${n}`,
  max_length: (n) => `a length of at most ${n}`,
  min_value: (n) => `at least ${n}`,
  max_value: (n) => `at most ${n}`,
  gt_value: (n) => `more than ${n}`,
  regex: (pattern) => `text that matches ${pattern}`,
  url: () => 'a URL',
  ip: () => 'an IP address',
};

function expectation(issue: BaseIssue<unknown>): string {
  if (hasOwnMessage(issue)) return issue.message.replace(/^expected /i, '');
  const check = checks[issue.type];
  if (check) return check(String(issue.requirement));
  if (issue.expected === null) return `a valid ${issue.type.replaceAll('_', ' ')}`;
  if (issue.kind !== 'schema') return issue.expected;
  const options = alternatives(issue.expected).map((option) => nouns[option] ?? option);
  const literal = options.every((option) => option.startsWith('"'));
  return literal && options.length > 1 ? `one of ${options.join(', ')}` : options.join(' or ');
}

function hasOwnMessage({ message, expected, received }: BaseIssue<unknown>): boolean {
  return !message.startsWith('Invalid ') || !message.endsWith(`${expected ? 'but r' : 'R'}eceived ${received}`);
}

function suggestion(issue: BaseIssue<unknown>, { secret, template }: Showing): string {
  if (typeof issue.input !== 'string' || secret || template !== undefined || issue.expected === null) return '';
  const names = alternatives(issue.expected)
    .filter((option) => option.startsWith('"'))
    .map((option) => JSON.parse(option) as string);
  const nearest = nearestName(issue.input, names);
  return nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`;
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
