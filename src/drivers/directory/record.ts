/**
 * What is remembered about a volume or snapshot, in a small JSON file beside the data.
 *
 * Data that democratic-csi made has no record. So every fact may be missing, and a missing fact is never compared with anything.
 */
import * as v from 'valibot';
import { CallError } from '../../core/errors.ts';
import type { Files } from './files.ts';
import type { Area, Layout } from './layout.ts';

const text = v.optional(v.string());
const parameters = v.optional(v.record(v.string(), v.string()));
const bytes = v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0)));

const common = {
  format: v.literal(1),
  /** The work (work.ts) that made it: its data is there until it has come to its place. */
  work: v.string(),
  name: text,
  createdAt: text,
  parameters,
  sizeBytes: bytes,
};

const volumeSchema = v.object({
  ...common,
  /** Null: it began empty. */
  source: v.optional(v.nullable(v.object({ type: v.picklist(['volume', 'snapshot']), id: v.string() }))),
  /** The project quota that limits it. */
  project: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
});

const snapshotSchema = v.object({ ...common, sourceVolumeId: text });

export type VolumeRecord = v.InferOutput<typeof volumeSchema>;
export type SnapshotRecord = v.InferOutput<typeof snapshotSchema>;
export type RecordOf<A extends Area> = A extends 'v' ? VolumeRecord : SnapshotRecord;

/** The record of a volume (`v`) or snapshot (`s`), or undefined. Throws DATA_LOSS for a file that is not one: guessing could break data. */
export async function readRecord<A extends Area>(
  files: Files,
  layout: Layout,
  area: A,
  id: string,
): Promise<RecordOf<A> | undefined> {
  const path = layout.record(area, id);
  const content = await files.read(path);
  if (content === undefined) return undefined;
  const parsed = v.safeParse(area === 'v' ? volumeSchema : snapshotSchema, parseJson(content));
  if (!parsed.success) {
    throw new CallError(
      'DATA_LOSS',
      `${path} is not a record of this driver: restore it, or remove it to go on without`,
    );
  }
  return parsed.output as RecordOf<A>;
}

/** A record as the text of its file. */
export function recordText(record: VolumeRecord | SnapshotRecord): string {
  return `${JSON.stringify(record)}\n`;
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}
