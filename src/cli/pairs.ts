/** `key=value` arguments, collected by commander one at a time. */
import { readFile } from 'node:fs/promises';
import { UsageError } from './usage-error.ts';

export type Pairs = Readonly<Record<string, string>>;

/** Collects repeated `key=value`. The value may contain `=`. */
export function collectPairs(text: string, before: Pairs = {}): Pairs {
  return { ...before, ...pair(text) };
}

/** Collects repeated `key=value,key=value`, each a set of its own. */
export function collectPairSets(text: string, before: readonly Pairs[] = []): readonly Pairs[] {
  return [...before, Object.assign({}, ...text.split(',').map(pair))];
}

export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** Secrets of which `@file` values are replaced by the file's content without its last line break. */
export async function readSecrets(secrets: Pairs = {}): Promise<Pairs> {
  const read = async ([key, value]: [string, string]) => {
    if (!value.startsWith('@')) return [key, value];
    return [key, (await readFile(value.slice(1), 'utf8')).replace(/\r?\n$/, '')];
  };
  return Object.fromEntries(await Promise.all(Object.entries(secrets).map(read)));
}

function pair(text: string): Pairs {
  const at = text.indexOf('=');
  // What was given is not repeated: it may be a secret.
  if (at < 1) throw new UsageError('parameters, secrets, contexts and topologies are written as key=value');
  return { [text.slice(0, at)]: text.slice(at + 1) };
}
