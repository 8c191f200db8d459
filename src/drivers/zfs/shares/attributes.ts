/** Attributes of targets, as configurations give them and the kernel wants them. */
import * as v from 'valibot';

/** The kernel wants 0 and 1. */
export const attributeValue = v.pipe(
  v.union([v.string(), v.number(), v.boolean()], 'a value'),
  v.transform((value) => (typeof value === 'boolean' ? String(Number(value)) : String(value))),
);

export const attributes = v.optional(v.record(v.string(), attributeValue));
