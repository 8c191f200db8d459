/** What a node remembers of a volume that it attached: enough to take it away again, by whatever process, with nothing else known of it. */
import * as v from 'valibot';

const newest = 1;

const schema = v.object({
  version: v.literal(newest),
  /** As the driver that staged it knows it. */
  volumeId: v.string(),
  /** Whose volume it is, behind the proxy. */
  connection: v.optional(v.string()),
  /** The `node_attach_driver`. */
  attacher: v.string(),
  /** What detaching takes. Undefined: there is nothing to detach. Without secrets. */
  identity: v.optional(v.record(v.string(), v.string())),
  /** The staging path; the target path of a volume that was published without staging. */
  place: v.string(),
  /** /proc/sys/kernel/random/boot_id. */
  bootId: v.string(),
  /** The process that wrote it, see owner.ts. */
  owner: v.string(),
  /** When it was written, in milliseconds since the epoch. */
  at: v.number(),
});

export type StagedRecord = Readonly<v.InferOutput<typeof schema>>;

/** What a file holds, or why nobody can know. */
export type ReadRecord =
  | { readonly record: StagedRecord; readonly unreadable?: undefined }
  | { readonly record?: undefined; readonly unreadable: string };

/** Never throws: nothing is guessed from half a record. */
export function parseRecord(text: string): ReadRecord {
  const value = parseJson(text);
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return { record: parsed.output };
  const version = typeof value === 'object' && value !== null && 'version' in value ? value.version : undefined;
  const isNewer = typeof version === 'number' && version > newest;
  return { unreadable: isNewer ? `it is of a later version of Switchboard (format ${version})` : 'it is damaged' };
}

export function recordText(record: Omit<StagedRecord, 'version'>): string {
  return `${JSON.stringify({ version: newest, ...record })}\n`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
