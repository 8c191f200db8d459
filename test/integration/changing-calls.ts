/** Calls that change storage, on a volume and a snapshot made beforehand, and what can be seen of their effect. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { link, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import type * as csi from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { createSnapshot, createVolume, deleteSnapshot, deleteVolume, mib, volumeRequest } from './csi-calls.ts';
import { makeSite, type Server, type Site } from './server-under-test.ts';

const { Controller } = services;

/** The connection that the operations work on, and one for a copy of its data. */
export const connection = 'main';
export const copy = 'copy';

const volume = (name: string) => `v:${connection}/${name}`;
const first = `s:${connection}/snapshot_driver=filecopy&snapshot_id=source-first`;

export type Operation = (server: Server) => Promise<unknown>;

const make =
  (from: Pick<Parameters<typeof volumeRequest>[1] & object, 'fromSnapshot' | 'fromVolume'>): Operation =>
  (server) =>
    server.call(Controller.CreateVolume, volumeRequest('made', { connection, ...from }));

/** On the volume `source` and its snapshot `first`. */
export const operations: Readonly<Record<string, Operation>> = {
  'CreateVolume, empty': make({}),
  'CreateVolume from a snapshot': make({ fromSnapshot: first }),
  'CreateVolume from a volume': make({ fromVolume: volume('source') }),
  CreateSnapshot: (server) => createSnapshot(server, 'second', volume('source')),
  DeleteVolume: (server) => deleteVolume(server, volume('source')),
  DeleteSnapshot: (server) => deleteSnapshot(server, first),
  ControllerExpandVolume: (server) =>
    server.call(Controller.ControllerExpandVolume, {
      volumeId: volume('source'),
      capacityRange: { requiredBytes: 2 * mib },
    }),
};

/** A site with both connections, whose server is not running. */
export async function prepare(t: TestContext): Promise<Site> {
  const site = await makeSite(t);
  await rm(site.path('connections/local.yaml'));
  await site.connect(connection);
  await site.connect(copy);
  const server = await site.start();
  await createVolume(server, 'source', { connection });
  const data = site.data(`${connection}/v/source`);
  await mkdir(join(data, 'folder'));
  await writeFile(join(data, 'file'), 'content', { mode: 0o751 });
  await link(join(data, 'file'), join(data, 'folder/other name'));
  await symlink('/nowhere', join(data, 'link'));
  await createSnapshot(server, 'first', volume('source'));
  await server.stop();
  await copyFolder(site.data(connection), site.path('template'));
  return site;
}

/** Both connections as they were prepared. */
export async function reset(site: Site): Promise<void> {
  for (const name of [connection, copy]) await rm(site.data(name), { recursive: true, force: true });
  await copyFolder(site.path('template'), site.data(connection));
}

export async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', '-T', from, to]);
}

export type Tree = readonly string[];

/** Every path with its kind, mode, links and content. */
async function treeOf(folder: string): Promise<Tree> {
  const names = (await readdir(folder, { recursive: true })).sort();
  const lines = names.map(async (name) => {
    const { mode, nlink } = await lstat(join(folder, name));
    const content = (mode & 0o170000) === 0o100000 ? await readFile(join(folder, name), 'utf8') : '';
    return [name, mode.toString(8), content === '' ? '' : nlink, content].join(' ');
  });
  return Promise.all(lines);
}

/** What a client can see of the connection, besides times. */
export async function stateOf(site: Site, server: Server) {
  const volumes = await server.call(Controller.ListVolumes, {});
  const snapshots = await server.call(Controller.ListSnapshots, {});
  const shown = ({ creationTime: _, ...rest }: csi.Snapshot) => ({ ...rest });
  const isHere = (id = '') => id.includes(`:${connection}/`);
  return {
    tree: [...(await treeOf(site.data(`${connection}/v`))), ...(await treeOf(site.data(`${connection}/s`)))],
    volumes: volumes.entries.filter((one) => isHere(one.volume?.volumeId)).map((one) => structuredClone({ ...one })),
    snapshots: snapshots.entries.flatMap((one) =>
      one.snapshot && isHere(one.snapshot.snapshotId) ? [shown(one.snapshot)] : [],
    ),
  };
}

export async function removeEverything(server: Server, from: string): Promise<void> {
  for (const name of ['made', 'source']) await deleteVolume(server, `v:${from}/${name}`);
  for (const name of ['source-first', 'source-second']) await deleteSnapshot(server, `s:${from}/${name}`);
}

/** Every volume and snapshot that is to be seen is as it was before, or as it is to become. */
export async function assertNothingHalf(site: Site, before: Tree, after: Tree): Promise<void> {
  for (const area of ['v', 's']) {
    const folder = site.data(`${connection}/${area}`);
    const now = await treeOf(folder);
    for (const name of await readdir(folder)) {
      const of = (tree: Tree) => tree.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}/`));
      assert.ok(
        [of(before), of(after)].some((tree) => `${tree}` === `${of(now)}`),
        `${area}/${name} is half: ${of(now)}`,
      );
    }
  }
}
