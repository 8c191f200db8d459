/** Datasets as `zfs get` and `zfs list` tell of them (zfs-get(8), zfs-list(8); `-j` since OpenZFS 2.3). */
import { CallError, oneLine } from '../../core/errors.ts';

export type DatasetType = 'filesystem' | 'volume' | 'snapshot' | 'bookmark';

export interface Property {
  /** As `-p` gives it: sizes in bytes, times in seconds. */
  readonly value: string;
  /** `inherited` values belong to a dataset above. */
  readonly source: 'local' | 'received' | 'inherited' | 'default' | 'temporary' | 'none';
}

export interface Dataset {
  /** `tank/volumes/v1`, with `@name` when it is a snapshot. */
  readonly name: string;
  readonly type: DatasetType;
  /** Those that were asked for and have a value. */
  readonly properties: Readonly<Record<string, Property>>;
}

/** A dataset that was made with these properties. */
export function datasetOf(name: string, type: DatasetType, properties: Readonly<Record<string, string>>): Dataset {
  const own = Object.entries(properties).map(([key, value]) => [key, { value, source: 'local' as const }]);
  return { name, type, properties: Object.fromEntries(own) };
}

/** A property's value, wherever it comes from; undefined when there is none. */
export function valueIn(dataset: Dataset, property: string): string | undefined {
  return dataset.properties[property]?.value;
}

/** A property's value that was set on this very dataset: what it inherits says nothing of it. */
export function ownValue(dataset: Dataset, property: string): string | undefined {
  const found = dataset.properties[property];
  return found && (found.source === 'local' || found.source === 'received') ? found.value : undefined;
}

/** A property in bytes or seconds; undefined when there is none, or when it is `none`. */
export function numberOf(dataset: Dataset, property: string): number | undefined {
  const value = valueIn(dataset, property);
  return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined;
}

/** Reads what `-j -p` printed. Throws UNAVAILABLE for anything else. */
export function parseJson(text: string): readonly Dataset[] {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (error) {
    throw new CallError(
      'UNAVAILABLE',
      `zfs printed something that is not JSON, and is asked for text from now on: ${oneLine(text, 100)}`,
      { cause: error },
    );
  }
  return Object.values(members(members(answer).datasets)).map((entry) => {
    const { name, type, properties } = members(entry);
    const read = Object.entries(members(properties)).flatMap(([key, property]) => {
      const { value, source } = members(property);
      // Without a value the source is that of the property before, in some versions.
      return typeof value !== 'string' || value === '-'
        ? []
        : [[key, { value, source: sourceOf(members(source).type) }]];
    });
    return {
      name: String(name),
      type: String(type).toLowerCase() as DatasetType,
      properties: Object.fromEntries(read),
    };
  });
}

/**
 * Reads what `zfs get -Hp -o name,property,value,source` printed for these properties, `type` among them. A value may have tabs and line ends,
 * which are not marked: a line that does not begin as a property's does belongs to the value before.
 */
export function parseText(text: string, asked: readonly string[]): readonly Dataset[] {
  const found = new Map<string, Record<string, Property>>();
  for (const line of joinLines(text, new Set(asked))) {
    const [name = '', property = '', ...rest] = line.split('\t');
    const source = rest.pop() ?? '';
    const value = rest.join('\t');
    const properties = found.get(name) ?? {};
    found.set(name, properties);
    if (value !== '-') properties[property] = { value, source: sourceOf(source.split(' ')[0]) };
  }
  return [...found].map(([name, properties]) => {
    return { name, type: (properties.type?.value ?? 'filesystem') as DatasetType, properties };
  });
}

function joinLines(text: string, asked: ReadonlySet<string>): readonly string[] {
  const lines: string[] = [];
  for (const line of text.split('\n').slice(0, -1)) {
    const isNew = asked.has(line.split('\t')[1] ?? '');
    if (isNew || lines.length === 0) lines.push(line);
    else lines[lines.length - 1] += `\n${line}`;
  }
  return lines;
}

function sourceOf(text: unknown): Property['source'] {
  const source = String(text).toLowerCase();
  switch (source) {
    case 'local':
    case 'received':
    case 'inherited':
    case 'default':
    case 'temporary':
      return source;
    default:
      return 'none';
  }
}

function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
