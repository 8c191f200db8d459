/**
 * The records of what is staged on this node: one small file each in `<state directory>/staged`.
 *
 * A record is written before anything is attached and removed when everything is detached, so that a crash between any two steps leaves a record
 * of whatever is there. It need not survive a crash of the machine, after which nothing is attached: nothing is synced to the disk.
 */
import { mkdir, readdir, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { asCallError, CallError, errnoOf } from '../../core/errors.ts';
import { ifThere } from '../../core/if-there.ts';
import type { Logger } from '../../core/logger.ts';
import { mayHang } from '../file-system-kind.ts';
import type { MountTable } from '../mount-table.ts';
import { thisOwner } from '../owner.ts';
import { parseRecord, type ReadRecord, recordText, type StagedRecord } from './record.ts';
import { isRecordName, ofPlace, ofSameElsewhere, type RecordSubject, recordName } from './record-name.ts';

export type FoundRecord = ReadRecord & {
  /** The file's name within the folder. */
  readonly name: string;
};

export interface StagedRecords {
  /** Undefined: this process keeps no records. */
  readonly folder: string | undefined;
  /** Identifies this run of the machine. */
  bootId(): Promise<string>;
  /**
   * Keeps a record, replacing that of the same volume at the same place. False when it cannot be kept, which is told to `log` once and is no
   * error.
   */
  write(log: Logger, table: MountTable, record: NewRecord): Promise<boolean>;
  /** All records of a place: more than one only while a volume takes another's place. Throws when the folder cannot be read. */
  of(table: MountTable, place: string): Promise<readonly FoundRecord[]>;
  /** Whether the same attached volume has a record of another place too. */
  isElsewhere(table: MountTable, subject: RecordSubject): Promise<boolean>;
  all(table: MountTable): Promise<readonly FoundRecord[]>;
  /** Removed already: success. */
  remove(name: string): Promise<void>;
}

export type NewRecord = Pick<StagedRecord, 'volumeId' | 'attacher' | 'identity' | 'place' | 'connection'>;

export interface RecordsOptions {
  /** Where the process keeps its state. Undefined: no records are kept. */
  readonly stateDirectory?: string | undefined;
  /** Default: the kernel's. */
  readonly bootId?: (() => Promise<string>) | undefined;
  /** Milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
}

/** Folders that could not be written when it was last tried, for the process: several planes share one folder. */
const unwritable = new Set<string>();

/** Where the records of a process with this state directory are. */
export const recordsFolder = (stateDirectory: string) => join(stateDirectory, 'staged');

/** No input or output happens before the first call. */
export function openRecords({ stateDirectory, bootId = readBootId, now = Date.now }: RecordsOptions): StagedRecords {
  if (stateDirectory === undefined) return noRecords(bootId);
  const folder = recordsFolder(stateDirectory);
  const isOutOfReach = (table: MountTable) => mayHang(table.covering(folder));

  async function namesIn(table: MountTable): Promise<readonly string[]> {
    if (isOutOfReach(table)) return [];
    try {
      return (await readdir(folder)).filter((name) => isRecordName(name) || name.startsWith('.'));
    } catch (error) {
      // Where nobody could ever write, no record is missing.
      if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(errnoOf(error) ?? '')) return [];
      const { code, message } = asCallError(error);
      throw new CallError(code, `the records of staged volumes cannot be read: ${message}`, { cause: error });
    }
  }

  async function readAll(names: readonly string[]): Promise<readonly FoundRecord[]> {
    const found = await Promise.all(names.map((name) => readOne(folder, name)));
    return found.filter((one) => one !== undefined);
  }

  return {
    folder,
    bootId,
    async write(log, table, record) {
      try {
        if (isOutOfReach(table)) throw new Error(`${folder} is on network storage, which may hang`);
        const [boot, owner] = await Promise.all([bootId(), thisOwner()]);
        await replace(folder, recordName(record), recordText({ ...record, bootId: boot, owner, at: now() }));
        if (unwritable.delete(folder)) log.info('records of staged volumes are kept again', { folder });
        return true;
      } catch (error) {
        if (unwritable.has(folder)) return false;
        unwritable.add(folder);
        log.warn(
          'no record of staged volumes can be kept: after a crash, volumes may stay attached; set SWITCHBOARD_STATE_DIR to a local folder that can be written',
          { folder, error: asCallError(error).message },
        );
        return false;
      }
    },
    async of(table, place) {
      const names = await namesIn(table);
      const isOfPlace = ofPlace(place);
      // Calls for one place exclude each other: a file that is only half written was left by a process that ended.
      const left = names.filter((name) => name.startsWith('.') && isOfPlace(name.slice(1)));
      for (const name of left) await unlink(join(folder, name)).catch(() => {});
      return await readAll(names.filter(isOfPlace));
    },
    isElsewhere: async (table, subject) => (await namesIn(table)).some(ofSameElsewhere(subject)),
    all: async (table) => readAll((await namesIn(table)).filter(isRecordName)),
    remove: async (name) => void (await ifThere(() => unlink(join(folder, name)))),
  };
}

function noRecords(bootId: () => Promise<string>): StagedRecords {
  return {
    folder: undefined,
    bootId,
    write: async () => false,
    of: async () => [],
    isElsewhere: async () => false,
    all: async () => [],
    remove: async () => {},
  };
}

/** Undefined: it was removed meanwhile. */
async function readOne(folder: string, name: string): Promise<FoundRecord | undefined> {
  try {
    const text = await ifThere(() => readFile(join(folder, name), 'utf8'));
    return text === undefined ? undefined : foundRecord(name, text);
  } catch (error) {
    return { name, unreadable: asCallError(error).message };
  }
}

/** What the file of this name holds. One that was copied or renamed by hand tells of another place than the one it is looked up for. */
export function foundRecord(name: string, text: string): FoundRecord {
  const read = parseRecord(text);
  if (!read.record || recordName(read.record) === name) return { name, ...read };
  return { name, unreadable: 'its name is not that of what it tells of' };
}

async function replace(folder: string, name: string, text: string): Promise<void> {
  const temporary = join(folder, `.${name}.new`);
  const write = () => writeFile(temporary, text, { mode: 0o600 });
  try {
    await write().catch(async (error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw error;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await write();
    });
    await rename(temporary, join(folder, name));
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  }
}

let ofThisBoot: Promise<string> | undefined;

function readBootId(): Promise<string> {
  ofThisBoot ??= readFile('/proc/sys/kernel/random/boot_id', 'utf8').then((text) => text.trim());
  return ofThisBoot;
}
