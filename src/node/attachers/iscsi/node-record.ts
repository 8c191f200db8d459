/** The text of one of iscsiadm's node records: lines of `name = value`, iscsiadm(8). */

/** In records that this program has made. iscsiadm leaves comments alone, and drops them when it writes a record itself. */
const mark = '# made for a volume: removed with its session';

/** The record with these settings, in place of those of the same names. */
export function withSettings(record: string, settings: Readonly<Record<string, string>>): string {
  const left = new Map(Object.entries(settings));
  const changed = record.split('\n').map((line) => {
    const name = nameIn(line);
    const value = name === undefined ? undefined : left.get(name);
    if (name === undefined || value === undefined) return line;
    left.delete(name);
    return `${name} = ${value}`;
  });
  const end = changed.findLastIndex((line) => nameIn(line) !== undefined) + 1;
  const added = [...left].map(([name, value]) => `${name} = ${value}`);
  return [...changed.slice(0, end), ...added, ...changed.slice(end)].join('\n');
}

/** The record as one that may be removed with its session. */
export function marked(record: string): string {
  if (isMarked(record)) return record;
  const lines = record.split('\n');
  const end = lines.findLastIndex((line) => nameIn(line) !== undefined) + 1;
  return [...lines.slice(0, end), mark, ...lines.slice(end)].join('\n');
}

export function settingIn(record: string, name: string): string | undefined {
  const line = record.split('\n').find((one) => nameIn(one) === name);
  return line?.slice(line.indexOf('=') + 1).trim();
}

/** Whether a record was made for volumes, and may be removed with the session that it is of. All others are somebody else's, and stay. */
export function isMarked(record: string): boolean {
  return record.split('\n').includes(mark);
}

/** Whether the machine itself logs in by this record, when it starts. */
export function isAutomatic(record: string): boolean {
  return ['automatic', 'onboot'].includes(settingIn(record, 'node.startup') ?? '');
}

function nameIn(line: string): string | undefined {
  return /^\s*([a-z][\w.[\]]*)\s*=/i.exec(line)?.[1];
}
