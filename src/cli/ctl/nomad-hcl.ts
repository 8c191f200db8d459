/**
 * HCL as Nomad reads it. Volume files are read by version 1 of the language and job files by version 2, which differ in how `${` is written
 * literally (as it stands, or as `$${`). An escape of the dollar is the same to both.
 */

/** A quoted string, on one line. */
export function hclString(text: string): string {
  const escaped = text.replace(/["\\]|\p{Cc}|[$%](?=\{)/gu, (one) => {
    if (one === '"' || one === '\\') return `\\${one}`;
    if (one === '\n') return '\\n';
    return `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `"${escaped}"`;
}

/** `["a", "b"]` */
export function hclList(texts: readonly string[]): string {
  return `[${texts.map(hclString).join(', ')}]`;
}

/** Lines of `name = value`, aligned as `nomad fmt` has them. Values are HCL already; those that are undefined are left out. */
export function hclAttributes(
  values: readonly (readonly [name: string, value: string | undefined])[],
): readonly string[] {
  const given = values.filter((one): one is readonly [string, string] => one[1] !== undefined);
  const width = Math.max(0, ...given.map(([name]) => name.length));
  return given.map(([name, value]) => `${name.padEnd(width)} = ${value}`);
}

/** A map whose keys are data, and so always quoted. */
export function hclMap(pairs: Readonly<Record<string, string>>): readonly string[] {
  return hclAttributes(Object.entries(pairs).map(([key, value]) => [hclString(key), hclString(value)]));
}

/** A block with its content indented; nothing when there is no content. */
export function hclBlock(name: string, content: readonly string[]): readonly string[] {
  if (content.length === 0) return [];
  return [`${name} {`, ...content.map((line) => (line === '' ? '' : `  ${line}`)), '}'];
}
