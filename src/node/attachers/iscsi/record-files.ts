/**
 * The files of iscsiadm's node records. Secrets go into them directly: iscsiadm takes values as arguments only, which every process of the
 * machine may read.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path/posix';
import { resolveInRoot } from '../../../backends/exec/root-path.ts';
import { errnoOf } from '../../../core/errors.ts';
import { settingIn } from './node-record.ts';
import type { Portal } from './portal.ts';

export interface RecordFile {
  readonly path: string;
  readonly text: string;
  readonly portal: Portal;
  readonly interface: string;
}

/** Where iscsiadm keeps its records: it is built for one of these, and a machine that was upgraded may have several. */
const databases = ['/var/lib/iscsi', '/etc/iscsi', '/usr/local/var/lib/iscsi', '/usr/local/etc/iscsi'];

/** The folders of records that there are, as this process sees them. `root`: that of iscsiadm. */
async function recordFolders(root: string): Promise<readonly string[]> {
  const found = await Promise.all(databases.map((path) => resolveInRoot(root, `${path}/nodes`)));
  return [...new Set(found.filter((path) => path !== undefined))].map((path) => join(root, path));
}

/** Whether iscsiadm knows an interface by this name. Those that are named for a way of transport need no record. */
export async function hasInterface(root: string, name: string): Promise<boolean> {
  if (/^(tcp|iser)$/.test(name)) return true;
  const paths = await Promise.all(databases.map((path) => resolveInRoot(root, `${path}/ifaces/${name}`)));
  return paths.some((path) => path !== undefined);
}

/** All records of a target. Whoever made them may have written its name in another case. */
export async function recordsOf(root: string, iqn: string): Promise<readonly RecordFile[]> {
  return await recordsWhere(root, (target) => target.toLowerCase() === iqn.toLowerCase());
}

/** All records of the targets whose names are wanted. */
export async function recordsWhere(root: string, isWanted: (iqn: string) => boolean): Promise<readonly RecordFile[]> {
  const records: RecordFile[] = [];
  for (const folder of await recordFolders(root)) {
    const targets = (await names(folder)).filter(isWanted);
    for (const target of targets) records.push(...(await recordsIn(join(folder, target))));
  }
  return records;
}

/** `address,port` is a file; `address,port,group` is a folder with a file for each interface. */
async function recordsIn(folder: string): Promise<readonly RecordFile[]> {
  const records: RecordFile[] = [];
  for (const name of await names(folder)) {
    const path = join(folder, name);
    const isFolder = (await stat(path).catch(() => undefined))?.isDirectory();
    const paths = isFolder ? (await names(path)).map((one) => join(path, one)) : [path];
    for (const one of paths) records.push(...(await readRecord(one)));
  }
  return records;
}

async function readRecord(path: string): Promise<readonly RecordFile[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const host = settingIn(text, 'node.conn[0].address');
  const port = Number(settingIn(text, 'node.conn[0].port'));
  if (!host || !port) return [];
  return [{ path, text, portal: { host, port }, interface: settingIn(text, 'iface.iscsi_ifacename') ?? 'default' }];
}

/** Replaces a record at once: whoever reads it sees the old one or the new one. It can be read by root alone from the beginning. */
export async function writeRecord(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // Among the records it would be taken for one.
  const temporary = join(path.slice(0, path.lastIndexOf('/nodes/')), `.new-${randomUUID()}`);
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  }
}

/** Removes a record, and the folders that are empty without it. Gone already: success. */
export async function removeRecord({ path }: Pick<RecordFile, 'path'>): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
  for (let folder = dirname(path); !folder.endsWith('/nodes') && folder !== '/'; folder = dirname(folder)) {
    if (
      !(await rmdir(folder).then(
        () => true,
        () => false,
      ))
    )
      return;
  }
}

async function names(folder: string): Promise<readonly string[]> {
  return await readdir(folder).catch(() => []);
}
