/**
 * Which volumes are mounted on this node, and for whom: Docker mounts a volume once for each container and tells callers apart by an id.
 *
 * A record is written before anything is mounted, and gets the caller's id when it is: so whatever is mounted has a record, and one without ids
 * tells of a mount that nobody wants any more. Ids of before a reboot are those of containers that are gone.
 */
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Mount, type MountTable, readMountTable } from '../../node/mount-table.ts';
import { jsonFolder } from './json-folder.ts';
import { fileNameOf } from './names.ts';

const schema = v.object({
  format: v.literal(1),
  name: v.string(),
  volumeId: v.string(),
  /** Callers that have it mounted. */
  ids: v.array(v.string()),
  /** /proc/sys/kernel/random/boot_id when it was mounted. */
  boot: v.string(),
  /** Attached to this node on the storage's side, under this node id. */
  nodeId: v.optional(v.string()),
  /** Files of the secrets that detaching takes. */
  secretFiles: v.optional(v.record(v.string(), v.string()), {}),
});

export type MountRecord = v.InferOutput<typeof schema>;

export interface Places {
  /** What Docker is given: a path below the mount root. */
  readonly target: string;
  readonly staging: string;
}

export interface MountRecords {
  /** The record, without the ids of an earlier boot. */
  read(name: string): Promise<MountRecord | undefined>;
  write(record: Omit<MountRecord, 'format' | 'boot'>): Promise<void>;
  remove(name: string): Promise<void>;
  all(skip: (error: unknown) => void): Promise<readonly MountRecord[]>;
  /** Those of one volume under all its names; records that cannot be read are passed over. */
  ofVolume(volumeId: string): Promise<readonly MountRecord[]>;
  /** Where this volume is mounted. Its folder is there afterwards. */
  placesOf(name: string): Promise<Places>;
  /** What is mounted for somebody now; undefined when nothing is. */
  mountOf(record: MountRecord | undefined): Promise<Mount | undefined>;
}

export interface MountRecordsOptions {
  readonly stateFolder: string;
  readonly mountRoot: string;
  /** Default: this machine's. */
  readonly bootId?: (() => Promise<string>) | undefined;
  /** Default: this process's. */
  readonly readTable?: (() => Promise<Pick<MountTable, 'at'>>) | undefined;
}

export function openMountRecords(options: MountRecordsOptions): MountRecords {
  const { stateFolder, mountRoot, bootId = readBootId, readTable = readMountTable } = options;
  const files = jsonFolder(join(stateFolder, 'mounts'), schema);
  const current = (boot: string, record: MountRecord): MountRecord =>
    record.boot === boot ? record : { ...record, boot, ids: [] };
  const placesBelow = (root: string, name: string): Places => {
    const folder = join(root, fileNameOf(name));
    return { target: join(folder, 'data'), staging: join(folder, 'staging') };
  };
  async function all(skip: (error: unknown) => void): Promise<readonly MountRecord[]> {
    const boot = await bootId();
    return (await files.all(skip)).map((record) => current(boot, record));
  }

  return {
    async read(name) {
      const record = await files.read(name);
      return record && current(await bootId(), record);
    },
    async write(record) {
      await files.write(record.name, { ...record, format: 1, boot: await bootId() });
    },
    remove: (name) => files.remove(name),
    all,
    ofVolume: async (volumeId) => (await all(() => {})).filter((record) => record.volumeId === volumeId),
    async placesOf(name) {
      await mkdir(join(mountRoot, fileNameOf(name)), { recursive: true, mode: 0o711 });
      return placesBelow(await realpath(mountRoot), name);
    },
    async mountOf(record) {
      if (!record || record.ids.length === 0) return undefined;
      const root = await realpath(mountRoot).catch(() => undefined);
      return root === undefined ? undefined : (await readTable()).at(placesBelow(root, record.name).target);
    },
  };
}

async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}
