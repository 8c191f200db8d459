/** Secrets in the configuration: marked where the schema names them, and hidden by that mark wherever a configuration is shown. */
import type { GenericSchema, InferOutput, MetadataAction, SchemaWithPipe } from 'valibot';
import { metadata, pipe } from 'valibot';
import { childrenOf, isMap, keysOf, metadataOf, viewsOf } from './schema.ts';

/** What stands in the place of a secret. */
const hidden = '***';

export type SecretSchema<T extends GenericSchema> = SchemaWithPipe<
  readonly [T, MetadataAction<InferOutput<T>, { readonly secret: true }>]
>;

/** Marks values of a schema as secret: `password: v.optional(secret(v.string()))`. */
export function secret<const T extends GenericSchema>(schema: T): SecretSchema<T> {
  return pipe(schema, metadata({ secret: true })) as unknown as SecretSchema<T>;
}

/** Whether values seen through any of these schemas are secret. */
export function isSecret(views: readonly GenericSchema[]): boolean {
  return views.some((view) => metadataOf(view, 'secret') === true);
}

/**
 * A deep copy of a configuration, before or after validation, that may be shown and logged: secrets are replaced by `***`. So is the value of
 * any key that the schema does not know, since it may be a secret's misspelled name.
 */
export function redacted(schema: GenericSchema, value: unknown): unknown {
  return redactedBy([schema], value);
}

function redactedBy(schemas: readonly GenericSchema[], value: unknown): unknown {
  if (value === undefined || value === null) return value;
  const views = schemas.flatMap((schema) => viewsOf(schema, value));
  if (isSecret(views)) return hidden;
  if (Array.isArray(value)) return value.map((item, index) => redactedBy(childrenOf(views, index), item));
  if (!isMap(value)) return value;
  const known = keysOf(views);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const unknown = known !== undefined && !known.includes(key);
      return [key, unknown ? hidden : redactedBy(childrenOf(views, key), item)];
    }),
  );
}
