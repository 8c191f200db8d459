/** A document against its schema: the typed options, or every mistake with its place. */
import type { BaseIssue, GenericSchema } from 'valibot';
import { safeParse } from 'valibot';
import { CallError } from '../core/errors.ts';
import { coerce } from './coerce.ts';
import { nearestPosition } from './document.ts';
import { innermost, isMissingKey, issueMessage, pathOf } from './issue-message.ts';
import type { Path } from './path.ts';
import type { Problem } from './problem.ts';
import { childrenOf, isMap, viewsOf } from './schema.ts';
import { isSecret } from './secret.ts';
import type { Source } from './source.ts';
import { problemAt, templateAt, writtenAt } from './source.ts';

/** Each round repairs what the round before made visible: the options of a union, then what is in the chosen one. */
const maxRounds = 4;

/**
 * `value` is what the schema made of `input`, and only meaningful without errors. Values of `input` may be replaced by equivalents (coerce).
 * Nothing is said about what lies at or below the paths in `judged`.
 */
export function validate(
  schema: GenericSchema,
  input: unknown,
  source: Source,
  judged: readonly Path[],
): { value: unknown; errors: readonly Problem[] } {
  try {
    let result = safeParse(schema, input);
    const textAt = (path: Path) => writtenAt(source, path);
    for (let round = 0; round < maxRounds && result.issues && coerce(input, result.issues, textAt); round++) {
      result = safeParse(schema, input);
    }
    const all: readonly BaseIssue<unknown>[] = result.issues?.flatMap(innermost) ?? [];
    const issues = all.filter(
      (issue) => !judged.some((path) => path.every((part, index) => pathOf(issue)[index] === part)),
    );
    return { value: result.output, errors: issues.map((issue) => errorOf(issue, schema, input, source)) };
  } catch (error) {
    // A transformation of the schema refused a value in its own words.
    if (!(error instanceof CallError)) throw error;
    return { value: undefined, errors: [problemAt(source, { line: 1, column: 1 }, [], 'error', error.message)] };
  }
}

function errorOf(issue: BaseIssue<unknown>, schema: GenericSchema, input: unknown, source: Source): Problem {
  const path = pathOf(issue);
  const { document } = source;
  const missing = isMissingKey(issue);
  const at = (missing ? undefined : document.valueAt(path)) ?? nearestPosition(document, path);
  const template = templateAt(source, path);
  const message = issueMessage(issue, path, { secret: isSecretAt(schema, input, path), template });
  const foreign = !missing && path.length > 0 && template === undefined && document.keyAt(path) === undefined;
  return problemAt(source, at, path, 'error', foreign ? `${message} (this comes from the main file)` : message);
}

/** Whether a path leads to or through something secret. */
function isSecretAt(schema: GenericSchema, input: unknown, path: Path): boolean {
  let views = viewsOf(schema, input);
  let value = input;
  for (const part of path) {
    if (isSecret(views)) return true;
    value = childOf(value, part);
    views = childrenOf(views, part).flatMap((one) => viewsOf(one, value));
  }
  return isSecret(views);
}

function childOf(value: unknown, part: string | number): unknown {
  if (Array.isArray(value)) return value[Number(part)];
  return isMap(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}
