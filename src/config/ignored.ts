/** Keys that are accepted because democratic-csi has them, and have no effect here: their use is a warning, not an error. */
import type { GenericSchema, InferOutput, MetadataAction, SchemaWithPipe } from 'valibot';
import { metadata, pipe } from 'valibot';
import { metadataOf } from './schema.ts';

export type IgnoredSchema<T extends GenericSchema> = SchemaWithPipe<
  readonly [T, MetadataAction<InferOutput<T>, { readonly ignored: string }>]
>;

/** Marks a key as accepted without effect. `why` completes the warning: "node.csiProxy has no effect: it is for Windows only". */
export function ignored<const T extends GenericSchema>(schema: T, why: string): IgnoredSchema<T> {
  return pipe(schema, metadata({ ignored: why })) as unknown as IgnoredSchema<T>;
}

/** Why a key with these schemas has no effect, or undefined when it has one. */
export function whyIgnored(views: readonly GenericSchema[]): string | undefined {
  for (const view of views) {
    const why = metadataOf(view, 'ignored');
    if (typeof why === 'string') return why;
  }
  return undefined;
}
