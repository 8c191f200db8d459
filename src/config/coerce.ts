/**
 * Harmless differences of type between a file and its schema.
 *
 * A text that YAML, or the content of a variable, made a number (`instance_id: 12`, `password: $PASSWORD` with digits in it) is taken as it was
 * written where the schema wants text; `"true"` and `"22"` are taken as truth value and number where it wants those. The schema decides, so
 * nothing changes that was right already.
 */
import type { BaseIssue } from 'valibot';
import { alternatives, pathOf } from './issue-message.ts';
import type { Path } from './path.ts';
import { isMap } from './schema.ts';

/** Replaces, within `value`, what the issues complain about and can be read in the wanted type. Tells whether anything was. */
export function coerce(
  value: unknown,
  issues: readonly BaseIssue<unknown>[],
  textAt: (path: Path) => string | undefined,
): boolean {
  let changed = false;
  for (const issue of issues) {
    if (issue.path?.at(-1)?.origin === 'key') continue;
    const path = pathOf(issue);
    const better = inWantedType(issue, textAt(path) ?? textOf(issue.input));
    if (better !== undefined && better !== issue.input) changed = replaceAt(value, path, better) || changed;
  }
  return changed;
}

function inWantedType(issue: BaseIssue<unknown>, text: string | undefined): string | number | boolean | undefined {
  if (issue.kind !== 'schema' || text === undefined) return undefined;
  if (issue.type === 'string') return text;
  if (issue.type === 'boolean') return text === 'true' || text === 'false' ? text === 'true' : undefined;
  if (issue.type === 'number') return /^-?\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : undefined;
  if (issue.type === 'picklist' || issue.type === 'literal') return chosen(issue.expected ?? '', text);
  for (const option of issue.issues ?? []) {
    const better = option.path ? undefined : inWantedType(option, text);
    if (better !== undefined) return better;
  }
  return undefined;
}

/** The choice that is written like this text: 2 for "2", "10" for 10. */
function chosen(expected: string, text: string): string | number | boolean | undefined {
  for (const option of alternatives(expected)) {
    if (option === text) return option === 'true' || option === 'false' ? option === 'true' : Number(option);
    if (option === JSON.stringify(text)) return text;
  }
  return undefined;
}

function textOf(input: unknown): string | undefined {
  if (typeof input === 'string') return input;
  return typeof input === 'number' || typeof input === 'boolean' ? String(input) : undefined;
}

/** Sets what is at the path in a value that is the caller's own. */
function replaceAt(root: unknown, path: Path, value: unknown): boolean {
  const key = path.at(-1);
  let container = root;
  for (const part of path.slice(0, -1)) container = childOf(container, part);
  if (Array.isArray(container) && typeof key === 'number') container[key] = value;
  else if (isMap(container) && key !== undefined) (container as Record<string, unknown>)[key] = value;
  else return false;
  return true;
}

function childOf(container: unknown, part: string | number): unknown {
  if (Array.isArray(container)) return container[Number(part)];
  return isMap(container) && Object.hasOwn(container, part) ? container[part] : undefined;
}
