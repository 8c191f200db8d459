/** Laying one configuration over another. */
import { isMap } from './schema.ts';

/**
 * `over` with everything from `under` that it does not say itself. Maps are merged key by key at every depth; any other value of `over` stands
 * as it is. A key that is present in `over` without a value (null) hides the one below it.
 *
 * democratic-csi merges lists item by item, so that a shorter list keeps the tail of the longer one below it: a connection could never
 * advertise fewer capabilities than the main file. Here a list replaces a list.
 */
export function mergeUnder(over: unknown, under: unknown): unknown {
  if (over === undefined) return under;
  if (!isMap(over) || !isMap(under)) return over;
  const keys = [...new Set([...Object.keys(over), ...Object.keys(under)])];
  const own = (map: Readonly<Record<string, unknown>>, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined);
  return Object.fromEntries(keys.map((key) => [key, mergeUnder(own(over, key), own(under, key))]));
}

/** A deep copy without the keys that have no value: in YAML `instance_id:` with nothing behind it is a key that is not set. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isMap(value)) return value;
  const present = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
  return Object.fromEntries(present.map(([key, item]) => [key, withoutNulls(item)]));
}
