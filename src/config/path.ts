/** Where in a configuration document something is: the keys and list indices that lead to it from the root. */
export type Path = readonly (string | number)[];

/** `zfs.cli.sudoEnabled`, `topology[0].extra`, `datasetProperties["org.example:note"]`; empty for the root. Different paths give different texts. */
export function formatPath(path: Path): string {
  return path.map((part, index) => formatPart(part, index === 0)).join('');
}

function formatPart(part: string | number, first: boolean): string {
  if (typeof part === 'number') return `[${part}]`;
  if (!/^[A-Za-z_][\w-]*$/.test(part)) return `[${JSON.stringify(part)}]`;
  return first ? part : `.${part}`;
}

/** The same for people, within a sentence: ` at zfs.cli`, or nothing for the root. */
export function atPath(path: Path, preposition: 'at' | 'in' = 'at'): string {
  return path.length === 0 ? '' : ` ${preposition} ${formatPath(path)}`;
}
