/** A folder of small JSON files, one for each volume: whole or not there at all, whenever the machine stops. */
import { mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { CallError } from '../../core/errors.ts';
import { ifThere } from '../../core/if-there.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { fileNameOf } from './names.ts';

export interface JsonFolder<T> {
  /** Undefined when there is none. Throws DATA_LOSS for a file that is not one of this folder's. */
  read(name: string): Promise<T | undefined>;
  /** Resolves when it is on the disk. */
  write(name: string, value: T): Promise<void>;
  remove(name: string): Promise<void>;
  /** All of them. Those that cannot be read are told to `skip`. */
  all(skip: (error: unknown) => void): Promise<readonly T[]>;
}

const ending = '.json';

/** The folder is made with the first file, for its owner alone. */
export function jsonFolder<T>(folder: string, schema: v.GenericSchema<unknown, T>): JsonFolder<T> {
  const fileOf = (name: string) => join(folder, fileNameOf(name) + ending);

  async function readAt(path: string): Promise<T | undefined> {
    const text = await ifThere(() => readFile(path, 'utf8'));
    if (text === undefined) return undefined;
    const parsed = v.safeParse(schema, parseJson(text));
    if (parsed.success) return parsed.output;
    throw new CallError('DATA_LOSS', `${path} is damaged: look at it, and remove it when its volume is not mounted`);
  }

  return {
    read: (name) => readAt(fileOf(name)),
    async write(name, value) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const path = fileOf(name);
      await withLock(path, never, () => replace(path, `${JSON.stringify(value)}\n`));
      await syncFolder(folder);
    },
    async remove(name) {
      const removed = await ifThere(async () => {
        await unlink(fileOf(name));
        return true;
      });
      if (removed) await syncFolder(folder);
    },
    async all(skip) {
      const files = (await ifThere(() => readdir(folder))) ?? [];
      const values: T[] = [];
      for (const file of files.filter((one) => one.endsWith(ending)).sort()) {
        const value = await readAt(join(folder, file)).catch(skip);
        if (value) values.push(value);
      }
      return values;
    },
  };
}

const never = new AbortController().signal;

async function replace(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
