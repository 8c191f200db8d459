/**
 * YAML text as a plain value that remembers where everything was written.
 *
 * YAML 1.2 with the core schema: one document, whose root is a map. Anchors, aliases and `<<` merge keys work, within limits that no file
 * written by a person meets. Numbers in YAML's octal notation (`0o755`) stay text: they are permission modes, not amounts.
 */
import type { YAMLMap } from 'yaml';
import { isMap, isScalar, parseDocument } from 'yaml';
import { lineIndex } from './line-index.ts';
import type { Path } from './path.ts';
import { formatPath } from './path.ts';
import type { Position } from './problem.ts';
import { ConfigError, inFileOrder } from './problem.ts';
import { syntaxMessage } from './syntax-message.ts';
import type { ConfigMap, ReportAt } from './yaml-values.ts';
import { offsetOf, readValues } from './yaml-values.ts';

export interface ConfigDocument {
  readonly value: ConfigMap;
  /** Where the key at this path is written; for list items, the item. Undefined when the path is not in the file. */
  keyAt(path: Path): Position | undefined;
  /** Where the value at this path begins. */
  valueAt(path: Path): Position | undefined;
  /** A number or truth value as it was written, such as `0777`. */
  writtenAt(path: Path): string | undefined;
}

const maxSyntaxProblems = 20;

/** Parses a configuration file's text. Throws ConfigError with everything that is wrong with it as YAML. `file` is its name in messages. */
export function readDocument(text: string, file: string): ConfigDocument {
  const position = lineIndex(text);
  const report: ReportAt = (offset, message, path) => ({
    severity: 'error',
    file,
    ...position(offset),
    path: formatPath(path),
    message,
  });
  const { value, places } = readValues(parseRoot(text, report), report);
  const at = (offset: number | undefined) => (offset === undefined ? undefined : position(offset));
  return {
    value,
    keyAt: (path) => at(places.get(formatPath(path))?.key),
    valueAt: (path) => at(places.get(formatPath(path))?.value),
    writtenAt: (path) => places.get(formatPath(path))?.written,
  };
}

/** The position of a path's key, or else of the nearest key or list item around it. */
export function nearestPosition(document: ConfigDocument, path: Path): Position {
  for (let length = path.length; length > 0; length--) {
    const position = document.keyAt(path.slice(0, length));
    if (position) return position;
  }
  return { line: 1, column: 1 };
}

function parseRoot(text: string, report: ReportAt): YAMLMap {
  // Duplicate keys are looked for when the values are read: as texts, and knowing where the first one is.
  const options = { prettyErrors: false, schema: 'core', uniqueKeys: false } as const;
  const document = parseDocument(text, options);
  const wrong = [...document.errors, ...document.warnings.filter((warning) => warning.code === 'TAG_RESOLVE_FAILED')];
  if (wrong.length > 0) {
    const problems = wrong.slice(0, maxSyntaxProblems).map((one) => report(one.pos[0], syntaxMessage(one), []));
    throw new ConfigError(inFileOrder(problems));
  }
  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) {
    throw new ConfigError([report(0, 'the file is empty: expected a map with the key driver', [])]);
  }
  if (!isMap(root)) {
    throw new ConfigError([report(offsetOf(root), 'expected a map of keys and values, such as "driver: proxy"', [])]);
  }
  return root;
}
