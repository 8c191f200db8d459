/** A configuration file's way from text to typed options: read, expand, merge, choose the driver's schema, validate, review. */
import type { GenericSchema } from 'valibot';
import { nearestPosition } from './document.ts';
import type { Environment } from './expand.ts';
import { found } from './issue-message.ts';
import { mergeUnder, withoutNulls } from './merge.ts';
import { nearestName } from './nearest-name.ts';
import { atPath } from './path.ts';
import type { Problem } from './problem.ts';
import { ConfigError, inFileOrder } from './problem.ts';
import { readConfigFile } from './read-file.ts';
import { review } from './review.ts';
import type { Source } from './source.ts';
import { problemAt, readSource } from './source.ts';
import { validate } from './validate.ts';
import type { ConfigMap } from './yaml-values.ts';

export interface LoadOptions {
  /** Where `$VAR` and `${VAR}` come from. */
  readonly env: Environment;
  /**
   * What this file stands on: another file's {@link LoadedConfig.input}, or parts of it. Its values count where the file says nothing (see
   * mergeUnder). It was expanded and reviewed before and is not again.
   */
  readonly under?: unknown;
  /** All names that `driver:` may have, for the message about one that does not exist. */
  readonly driverNames?: readonly string[];
}

export interface LoadedConfig<T> {
  /** The name under `driver:`. */
  readonly driver: string;
  /** What the schema made of it. */
  readonly value: T;
  /** The document before validation, with variables expanded and `under` merged in. May contain secrets: show it only `redacted`. */
  readonly input: ConfigMap;
  /** In the order of the file. */
  readonly warnings: readonly Problem[];
}

/** The schema of the whole file for a driver's name; undefined when there is no such driver. */
export type SchemaFor<T> = (driver: string) => GenericSchema<unknown, T> | undefined;

/** Reads and validates a configuration file; see {@link parseConfig} and {@link readConfigFile}. */
export async function loadConfig<T>(
  path: string,
  schemaFor: SchemaFor<T>,
  options: LoadOptions,
): Promise<LoadedConfig<T>> {
  return parseConfig(await readConfigFile(path), path, schemaFor, options);
}

/**
 * Validates the text of a configuration file. `file` is its name in messages.
 *
 * Throws {@link ConfigError} with everything that is wrong, warnings included, and nothing else. Keys that the schema does not know are
 * warnings. Variables are expanded before `under` is merged in.
 */
export function parseConfig<T>(
  text: string,
  file: string,
  schemaFor: SchemaFor<T>,
  options: LoadOptions,
): LoadedConfig<T> {
  const source = readSource(text, file, options.env);
  const input = withoutNulls(mergeUnder(source.value, options.under)) as ConfigMap;
  const unset = unsetVariables(source);
  const choice = chooseSchema(source, input, schemaFor, options.driverNames ?? []);
  if ('severity' in choice) throw new ConfigError(inFileOrder([choice, ...unset]));
  const { driver, schema } = choice;
  const findings = review(schema, source.value);
  const reviewed = findings.map(({ path, severity, message }) => {
    return problemAt(source, nearestPosition(source.document, path), path, severity, message);
  });
  const misplaced = findings.filter(({ severity }) => severity === 'error').map(({ path }) => path);
  const { value, errors } = validate(schema, input, source, misplaced);
  const problems = inFileOrder([...unset, ...reviewed, ...errors]);
  if (problems.some((problem) => problem.severity === 'error')) throw new ConfigError(problems);
  return { driver, value: value as T, input, warnings: problems };
}

function unsetVariables(source: Source): readonly Problem[] {
  return source.unset.map(({ path, variable }) => {
    const at = source.document.valueAt(path) ?? nearestPosition(source.document, path);
    const message = `the variable ${variable} is not set, so it is empty${atPath(path)}; write $$ for a literal dollar`;
    return problemAt(source, at, path, 'warning', message);
  });
}

/** The schema for the name under `driver:`, or what is wrong with that name. */
function chooseSchema<T>(
  source: Source,
  { driver }: ConfigMap,
  schemaFor: SchemaFor<T>,
  names: readonly string[],
): { driver: string; schema: GenericSchema<unknown, T> } | Problem {
  const at = source.document.valueAt(['driver']) ?? { line: 1, column: 1 };
  const showing = { secret: false, template: undefined };
  if (typeof driver !== 'string' || driver === '') {
    const message = `expected the key driver with a driver's name, found ${found(driver, showing)}`;
    return problemAt(source, at, ['driver'], 'error', message);
  }
  const schema = schemaFor(driver);
  if (schema) return { driver, schema };
  const nearest = nearestName(driver, names);
  const known = names.length === 0 ? '' : `; known are ${names.join(', ')}`;
  const advice = nearest === undefined ? known : `; did you mean ${nearest}?`;
  return problemAt(source, at, ['driver'], 'error', `there is no driver ${found(driver, showing)}${advice}`);
}
