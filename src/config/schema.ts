/**
 * Looking inside a valibot schema: which schemas can apply to a value and to what is in it. Unknown keys and secrets are found this way, so
 * that a schema remains the only description of a configuration file.
 */
import type { GenericSchema } from 'valibot';
import { is } from 'valibot';

/** The parts of any schema that matter here; each kind of schema has some of them. */
interface Parts {
  readonly type: string;
  /** object, strict_object, loose_object, object_with_rest. */
  readonly entries?: Readonly<Record<string, GenericSchema>>;
  readonly rest?: GenericSchema;
  /** record: the schema of values; variant: undefined, `key` is then the discriminator's name. */
  readonly value?: GenericSchema;
  readonly key?: unknown;
  /** array. */
  readonly item?: GenericSchema;
  /** tuple. */
  readonly items?: readonly GenericSchema[];
  /** optional, nullish and their kin. */
  readonly wrapped?: GenericSchema;
  /** union, variant, intersect; a picklist has plain values here. */
  readonly options?: readonly unknown[];
  /** lazy. */
  readonly getter?: (input: unknown) => GenericSchema;
  readonly pipe?: readonly { readonly kind: string; readonly type: string; readonly metadata?: unknown }[];
}

const branching: ReadonlySet<string> = new Set(['union', 'variant', 'intersect']);

/** The schema itself and all schemas it stands for when it meets this value: what it wraps, its options, the start of its pipe. */
export function viewsOf(schema: GenericSchema, value: unknown): readonly GenericSchema[] {
  const views = new Set<GenericSchema>();
  const visit = (one: GenericSchema): void => {
    if (views.has(one)) return;
    views.add(one);
    const parts = partsOf(one);
    const first = parts.pipe?.[0];
    if (first && isSchema(first)) visit(first);
    if (parts.wrapped) visit(parts.wrapped);
    if (parts.getter) visit(parts.getter(value));
    for (const option of optionsFor(parts, value)) visit(option);
  };
  visit(schema);
  return [...views];
}

/** The schemas of the value at `key` (an index for lists) in values of these schemas. Empty: none of them knows the key. */
export function childrenOf(views: readonly GenericSchema[], key: string | number): readonly GenericSchema[] {
  return views.flatMap((view) => {
    const parts = partsOf(view);
    if (typeof key === 'number') return parts.items?.[key] ?? parts.item ?? parts.rest ?? [];
    if (parts.entries) return (Object.hasOwn(parts.entries, key) ? parts.entries[key] : parts.rest) ?? [];
    return parts.type === 'record' ? (parts.value ?? []) : [];
  });
}

/** The names of the keys that maps of these schemas may have, or undefined when they may have any. */
export function keysOf(views: readonly GenericSchema[]): readonly string[] | undefined {
  const parts = views.map(partsOf);
  if (parts.some((one) => open.has(one.type))) return undefined;
  const maps = parts.filter((one) => one.entries);
  return maps.length === 0 ? undefined : [...new Set(maps.flatMap((one) => Object.keys(one.entries ?? {})))];
}

const open: ReadonlySet<string> = new Set(['record', 'loose_object', 'object_with_rest', 'any', 'unknown', 'custom']);

/** Whether values of these schemas are maps and never lists. */
export function onlyMaps(views: readonly GenericSchema[]): boolean {
  const types = views.map((view) => partsOf(view).type);
  return types.some((type) => maps.has(type)) && !types.some((type) => lists.has(type));
}

const maps: ReadonlySet<string> = new Set(['object', 'strict_object', 'loose_object', 'object_with_rest', 'record']);
const lists: ReadonlySet<string> = new Set(['array', 'tuple', 'any', 'unknown', 'custom']);

/** What `v.metadata` in the pipe of this very schema says under `name`. */
export function metadataOf(schema: GenericSchema, name: string): unknown {
  for (const item of partsOf(schema).pipe ?? []) {
    const { metadata } = item;
    if (item.kind !== 'metadata' || typeof metadata !== 'object' || metadata === null) continue;
    if (Object.hasOwn(metadata, name)) return (metadata as Record<string, unknown>)[name];
  }
  return undefined;
}

/** Of a variant, only the options whose discriminator fits the value; all of them when none does. */
function optionsFor(parts: Parts, value: unknown): readonly GenericSchema[] {
  if (!branching.has(parts.type)) return [];
  const options = (parts.options ?? []) as readonly GenericSchema[];
  const { key } = parts;
  if (parts.type !== 'variant' || typeof key !== 'string' || !isMap(value)) return options;
  const fitting = options.filter((option) => {
    const discriminator = partsOf(option).entries?.[key];
    return !discriminator || is(discriminator, value[key]);
  });
  return fitting.length === 0 ? options : fitting;
}

/** A map as YAML and JSON know it. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function isSchema(item: { readonly kind: string }): item is GenericSchema {
  return item.kind === 'schema';
}

function partsOf(schema: GenericSchema): Parts {
  return schema as unknown as Parts;
}
