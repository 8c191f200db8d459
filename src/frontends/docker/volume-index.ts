/**
 * What this node knows of volumes by name: a cache of what the back ends say, for when they cannot be asked, and the memory for those that
 * remember no options. Losing it loses no volume.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { type JsonFolder, jsonFolder } from './json-folder.ts';

const text = v.record(v.string(), v.string());

const schema = v.object({
  format: v.literal(1),
  name: v.string(),
  /** The volume's id. */
  volumeId: v.string(),
  context: text,
  /** As given, secrets by the names of their files. */
  options: text,
  capacityBytes: v.number(),
  /** False: it was made by somebody else, and is not ours to remove. */
  made: v.boolean(),
  /** RFC 3339. Undefined: not made by this node. */
  createdAt: v.optional(v.string()),
});

export type IndexedVolume = v.InferOutput<typeof schema>;
export type VolumeIndex = JsonFolder<IndexedVolume>;

export function openVolumeIndex(stateFolder: string): VolumeIndex {
  return jsonFolder(join(stateFolder, 'volumes'), schema);
}
