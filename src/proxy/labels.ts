/**
 * Topology labels (CSI spec, message `Topology`): a key is `<DNS name>/<name>`, name and value have at most 63 characters, begin and end with
 * a letter or digit, and hold only letters, digits, `-`, `_` and `.` between.
 */
const word = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const domain = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** What is wrong with the key, or undefined. */
export function problemWithKey(key: string): string | undefined {
  const slash = key.indexOf('/');
  if (slash < 0) return `"${key}" has no prefix: a topology key is <domain>/<name>`;
  const prefix = problemWithPrefix(key.slice(0, slash));
  if (prefix !== undefined) return prefix;
  return word.test(key.slice(slash + 1)) ? undefined : `"${key.slice(slash + 1)}" is not a topology key: ${rule}`;
}

/** What is wrong with the domain in front of a key, or undefined. */
export function problemWithPrefix(prefix: string): string | undefined {
  return prefix.length <= 253 && domain.test(prefix) ? undefined : `"${prefix}" is not a DNS name`;
}

/** What is wrong with the value, or undefined. */
export function problemWithValue(value: string): string | undefined {
  return word.test(value) ? undefined : `${JSON.stringify(value)} is not a topology value: ${rule}`;
}

/** A key as people write it: short ones get the prefix, full ones stay. */
export function fullKey(prefix: string, key: string): string {
  return key.includes('/') ? key : `${prefix}/${key}`;
}

const rule = 'at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit';
