/** A configuration file on its way: what it says with variables expanded, and where it says it. */
import type { ConfigDocument } from './document.ts';
import { readDocument } from './document.ts';
import type { Environment, Expansion } from './expand.ts';
import { expandVariables } from './expand.ts';
import type { Path } from './path.ts';
import { formatPath } from './path.ts';
import type { Position, Problem } from './problem.ts';

export interface Source extends Expansion {
  readonly file: string;
  readonly document: ConfigDocument;
}

/** Throws ConfigError when the text is not a usable YAML document. */
export function readSource(text: string, file: string, env: Environment): Source {
  const document = readDocument(text, file);
  return { ...expandVariables(document.value, env), document, file };
}

export function problemAt(
  source: Source,
  { line, column }: Position,
  path: Path,
  severity: Problem['severity'],
  message: string,
): Problem {
  return { severity, file: source.file, line, column, path: formatPath(path), message };
}

/** A text as it was written: with variables expanded, but before it became a number, a truth value or JSON. */
export function writtenAt(source: Source, path: Path): string | undefined {
  return source.expanded.get(formatPath(path))?.text ?? source.document.writtenAt(path);
}

/** The text with variables that the value at a path comes from, or undefined when it stands in the file itself. */
export function templateAt(source: Source, path: Path): string | undefined {
  for (let length = path.length; length > 0; length--) {
    const expanded = source.expanded.get(formatPath(path.slice(0, length)));
    if (expanded) return expanded.template;
  }
  return undefined;
}
