/** Nomad's sequences of calls, as its source has them, against the program on real mounts. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { services } from '../../src/generated/services.js';
import { mountsBelow, removeFolder } from '../conformance/leftovers.ts';
import {
  failureOf,
  isIgnorable,
  type RegisteredVolume,
  readOnly,
  readWrite,
  shared,
  volumeManager,
} from './nomad-client.ts';
import { type Plugin, type PluginTask, startPlugin } from './nomad-plugin.ts';
import { nomadServer } from './nomad-server.ts';
import { localDirectories } from './server-under-test.ts';

const { Controller, Node } = services;
const mib = 2 ** 20;

/** One machine: a Nomad client with a connection `local`. */
async function makeClient(t: TestContext, more = '') {
  const root = await mkdtemp(join(tmpdir(), 'nomad-'));
  const started: Plugin[] = [];
  t.after(async () => {
    for (const plugin of started) await plugin.stop();
    await removeFolder(root);
  });
  await mkdir(join(root, 'connections'));
  const config = join(root, 'switchboard.yaml');
  await writeFile(join(root, 'connections/local.yaml'), localDirectories(join(root, 'base')));
  await writeFile(
    config,
    `driver: proxy\nproxy: { configFolder: ${join(root, 'connections')}, nodeTopology: { type: node } }\n${more}`,
  );
  return {
    root,
    base: join(root, 'base'),
    async start(type: PluginTask['type'], more: Partial<PluginTask> = {}): Promise<Plugin> {
      const mode = type === 'monolith' ? [] : ['--csi-mode', type];
      const plugin = await startPlugin({
        stateFolder: join(root, 'data/client'),
        pluginId: 'org.switchboard.csi',
        type,
        args: ['--config', config, ...mode],
        ...more,
        env: { PATH: process.env.PATH ?? '', CSI_NODE_ID: 'client-1', ...more.env },
      });
      started.push(plugin);
      return plugin;
    },
    /** Nothing mounted, no paths but the folders that Nomad makes itself. */
    async assertClean(expected: readonly string[] = []) {
      assert.deepEqual(await mountsBelow(root), expected);
      for (const kind of await readdir(join(root, 'data/client/csi'))) {
        if (kind === 'plugins') continue;
        const entries = await readdir(join(root, 'data/client/csi', kind), { recursive: true });
        assert.deepEqual(
          entries.filter((path) => /\/(rw|ro)-file-system/.test(path)),
          [],
        );
      }
    },
  };
}

test('a volume from its creation to its deletion, with a fingerprint after each step', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const server = nomadServer([plugin]);
  const manager = volumeManager(() => plugin);
  assert.match(plugin.nodeId, /client-1/);

  const volume = await server.create({ id: 'data', bytes: mib });
  assert.deepEqual(await server.create({ id: 'data', bytes: mib }), volume);
  assert.deepEqual(await server.external(), [volume.externalId]);
  await server.register(volume, { connection: 'local' });
  assert.ok(await plugin.fingerprint());

  const context = await server.claim(volume, plugin.nodeId, readWrite);
  const path = await manager.mount(volume, 'alloc-1', readWrite, context);
  await writeFile(join(path, 'file'), 'kept');
  assert.deepEqual(manager.calls(), ['stage', 'publish']);
  assert.ok(await plugin.fingerprint());

  // A second allocation of the same usage shares the staged volume.
  const second = await manager.mount(volume, 'alloc-2', readWrite, context);
  assert.deepEqual(manager.calls(), ['publish']);
  assert.equal(await readFile(join(second, 'file'), 'utf8'), 'kept');

  assert.equal(await server.expand(volume, 2 * mib), false);
  const snapshot = await server.snapshot(volume, 'before');
  const restored = await server.create({ id: 'restored', bytes: 2 * mib, snapshotId: snapshot });
  const copied = await server.create({ id: 'copied', bytes: 2 * mib, cloneId: volume.externalId });
  for (const copy of [restored, copied]) {
    assert.equal(await readFile(join(await manager.mount(copy, 'alloc-3', readOnly), 'file'), 'utf8'), 'kept');
    await manager.unmount(copy, 'alloc-3', readOnly);
  }
  manager.calls();

  const inUse = await failureOf(server.delete(volume));
  assert.equal(inUse?.code, 'FAILED_PRECONDITION');
  await manager.unmount(volume, 'alloc-1', readWrite);
  assert.deepEqual(manager.calls(), ['unpublish']);
  await manager.unmount(volume, 'alloc-2', readWrite);
  assert.deepEqual(manager.calls(), ['unpublish', 'unstage']);
  await server.release(volume, plugin.nodeId);
  for (const one of [volume, restored, copied]) await server.delete(one);
  await server.deleteSnapshot(snapshot);
  assert.deepEqual(await server.external(), []);
  await client.assertClean();
  await server.delete(volume);
});

test('one volume for writing and for reading at once: two stagings, neither disturbs the other', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const manager = volumeManager(() => plugin);
  const volume = await nomadServer([plugin]).create({ id: 'both' });

  const written = await manager.mount(volume, 'writer', readWrite);
  const read = await manager.mount(volume, 'reader', readOnly);
  const all = await manager.mount(volume, 'sharer', shared);
  assert.deepEqual(manager.calls(), ['stage', 'publish', 'stage', 'publish', 'stage', 'publish']);
  await writeFile(join(written, 'file'), 'one');
  assert.equal(await readFile(join(read, 'file'), 'utf8'), 'one');
  await assert.rejects(writeFile(join(read, 'file'), 'two'), { code: 'EROFS' });

  await manager.unmount(volume, 'writer', readWrite);
  assert.equal(await readFile(join(read, 'file'), 'utf8'), 'one');
  await writeFile(join(all, 'file'), 'three');
  await manager.unmount(volume, 'reader', readOnly);
  assert.equal(await readFile(join(all, 'file'), 'utf8'), 'three');
  await manager.unmount(volume, 'sharer', shared);
  await client.assertClean();
});

test('controller and node in two processes, two controllers called in turn and at once', async (t) => {
  const client = await makeClient(t);
  const controllers = [await client.start('controller'), await client.start('controller')];
  const node = await client.start('node');
  const server = nomadServer(controllers);
  const manager = volumeManager(() => node);
  assert.equal(node.controllerCan.size, 0);
  assert.equal(controllers[0]?.nodeCan.size, 0);

  // Nomad puts no order on creations: both controllers make the same volume at once, and others beside it.
  const ids = ['one', 'one', 'two', 'two', 'three', 'three'];
  const volumes: RegisteredVolume[] = [];
  // What two processes do to one volume at the same moment may be refused to one of them, and is found by the next try.
  const create = async (id: string): Promise<void> => {
    const made = await server.create({ id, bytes: mib }).catch((error: unknown) => {
      if (error instanceof CallError && error.code === 'ABORTED') return server.create({ id, bytes: mib });
      throw error;
    });
    volumes.push(made);
  };
  await Promise.all(ids.map(create));
  assert.equal(volumes.length, ids.length);
  const [volume] = volumes.filter(({ id }) => id === 'one');
  assert.ok(volume);
  assert.deepEqual((await server.external()).toSorted(), ['v:local/one', 'v:local/three', 'v:local/two']);

  const path = await manager.mount(volume, 'alloc', readWrite, await server.claim(volume, node.nodeId, readWrite));
  await writeFile(join(path, 'file'), 'kept');
  assert.equal(await server.expand(volume, 2 * mib), false);
  const snapshot = await server.snapshot(volume, 'snap');
  const restored = await server.create({ id: 'restored', snapshotId: snapshot, bytes: 2 * mib });
  assert.equal(await readFile(join(await manager.mount(restored, 'alloc', readOnly), 'file'), 'utf8'), 'kept');
  await manager.unmount(restored, 'alloc', readOnly);
  await manager.unmount(volume, 'alloc', readWrite);
  await server.deleteSnapshot(snapshot);
  await Promise.all([...volumes, restored].map((one) => server.delete(one)));
  assert.deepEqual(await server.external(), []);
  await client.assertClean();
});

test('the plugin is killed in the middle: what is mounted lives on, and comes down after the restart', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const server = nomadServer([plugin]);
  const manager = volumeManager(() => plugin);
  const volume = await server.create({ id: 'data' });
  const path = await manager.mount(volume, 'alloc-1', readWrite);
  const file = await open(join(path, 'file'), 'w');
  t.after(() => file.close().catch(() => {}));

  await plugin.killAndRestart();
  await file.write('written after the kill');
  await file.close();
  assert.equal(await readFile(join(path, 'file'), 'utf8'), 'written after the kill');
  await manager.mount(volume, 'alloc-2', readWrite);
  await plugin.killAndRestart();
  await manager.unmount(volume, 'alloc-1', readWrite);
  await plugin.killAndRestart();
  await manager.unmount(volume, 'alloc-2', readWrite);
  await client.assertClean();
  await server.delete(volume);
});

test('the client is restarted: it mounts again what is mounted, and no call is made for it', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const volume = await nomadServer([plugin]).create({ id: 'data' });
  const before = volumeManager(() => plugin);
  await before.mount(volume, 'alloc-1', readWrite);
  const after = volumeManager(() => plugin);
  await after.mount(volume, 'alloc-1', readWrite);
  assert.deepEqual(after.calls(), []);
  await after.unmount(volume, 'alloc-1', readWrite);
  await client.assertClean();
  // A collection of claims that was under way does it all once more.
  await before.unmount(volume, 'alloc-1', readWrite);
  await client.assertClean();
});

test('the machine is started anew: folders are there, mounts are not', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const volume = await nomadServer([plugin]).create({ id: 'data' });
  const before = volumeManager(() => plugin);
  for (const alloc of ['alloc-1', 'alloc-2'])
    await writeFile(join(await before.mount(volume, alloc, readWrite), alloc), '');
  for (const path of await mountsBelow(client.root)) execFileSync('umount', [path]);
  await plugin.killAndRestart();

  // One allocation goes on, the other one's claim is only collected.
  const after = volumeManager(() => plugin);
  const path = await after.mount(volume, 'alloc-1', readWrite);
  assert.deepEqual(after.calls(), ['stage', 'publish']);
  assert.deepEqual((await readdir(path)).toSorted(), ['alloc-1', 'alloc-2']);
  await before.unmount(volume, 'alloc-2', readWrite);
  assert.equal((await readdir(path)).length, 2);
  await after.unmount(volume, 'alloc-1', readWrite);
  await client.assertClean();
});

test('nobody sets a time limit, and a mount that hangs is given up all the same', async (t) => {
  const client = await makeClient(t);
  const programs = join(client.root, 'bin');
  await mkdir(programs);
  await writeFile(join(programs, 'mount'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
  const plugin = await client.start('monolith', {
    env: { PATH: `${programs}:${process.env.PATH}`, MOUNT_DEFAULT_TIMEOUT: '300' },
  });
  const server = nomadServer([plugin]);
  const manager = volumeManager(() => plugin);
  const volume = await server.create({ id: 'data' });
  assert.equal((await failureOf(manager.mount(volume, 'alloc', readWrite)))?.code, 'DEADLINE_EXCEEDED');
  // Nomad takes back what it could not finish.
  await manager.unmount(volume, 'alloc', readWrite);
  await client.assertClean();

  await rm(join(programs, 'mount'));
  await manager.mount(volume, 'alloc', readWrite);
  await manager.unmount(volume, 'alloc', readWrite);
  await client.assertClean();
});

test('a job is stopped while a file is open: an error that says who, and success later', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const manager = volumeManager(() => plugin);
  const volume = await nomadServer([plugin]).create({ id: 'busy' });
  const path = await manager.mount(volume, 'alloc', readWrite);
  const file = await open(join(path, 'file'), 'w');
  t.after(() => file.close().catch(() => {}));

  const busy = await failureOf(manager.unmount(volume, 'alloc', readWrite));
  assert.equal(busy?.code, 'FAILED_PRECONDITION');
  assert.match(busy.message, new RegExp(`process ${process.pid} `));
  await file.write('not lost');
  await file.close();
  await manager.unmount(volume, 'alloc', readWrite);
  await client.assertClean();
  assert.equal(await readFile(join(client.base, 'v/busy/file'), 'utf8'), 'not lost');
});

test('a volume of its own for each allocation', async (t) => {
  const client = await makeClient(t);
  const plugin = await client.start('monolith');
  const server = nomadServer([plugin]);
  const manager = volumeManager(() => plugin);
  const indexes = [0, 1, 2];
  const volumes = await Promise.all(indexes.map((index) => server.create({ id: `web[${index}]`, bytes: mib })));
  assert.deepEqual(
    volumes.map(({ externalId }) => externalId),
    ['v:local/web.5b0.5d', 'v:local/web.5b1.5d', 'v:local/web.5b2.5d'],
  );
  const mounted = await Promise.all(volumes.map((volume, index) => manager.mount(volume, `alloc-${index}`, readWrite)));
  await Promise.all(mounted.map((path, index) => writeFile(join(path, 'index'), String(index))));
  for (const index of indexes) {
    assert.equal(await readFile(join(client.base, `v/web.5b${index}.5d/index`), 'utf8'), String(index));
  }
  await Promise.all(volumes.map((volume, index) => manager.unmount(volume, `alloc-${index}`, readWrite)));
  await client.assertClean();
});

test('what is unknown or gone already can be taken away', async (t) => {
  const client = await makeClient(
    t,
    'service: { controller: { capabilities: { rpc: [CREATE_DELETE_VOLUME, PUBLISH_UNPUBLISH_VOLUME] } } }\n',
  );
  const plugin = await client.start('monolith');
  const server = nomadServer([plugin]);
  const manager = volumeManager(() => plugin);
  assert.ok(plugin.controllerCan.has('PUBLISH_UNPUBLISH_VOLUME'));
  const volume = await server.create({ id: 'data' });

  // Claims are given again and again, and released whatever became of the node.
  const context = await server.claim(volume, plugin.nodeId, readWrite);
  assert.deepEqual(await server.claim(volume, plugin.nodeId, readWrite), context);
  await manager.mount(volume, 'alloc', readWrite, context);
  await manager.unmount(volume, 'alloc', readWrite);
  for (const nodeId of [plugin.nodeId, plugin.nodeId, 'n=gone', 'never an id of ours', '']) {
    await server.release(volume, nodeId);
  }

  const folder = join(plugin.volumesFolder, 'nowhere/at/all');
  const unknown = [volume.externalId, 'v:local/never', 'v:missing/data', 'of another plugin', 'v:', 'v:local/../x'];
  for (const volumeId of unknown) {
    const failures = [
      await failureOf(plugin.call(Node.NodeUnpublishVolume, { volumeId, targetPath: folder })),
      await failureOf(plugin.call(Node.NodeUnstageVolume, { volumeId, stagingTargetPath: folder })),
      // A connection whose file is missing is no proof that nothing is attached there.
      volumeId === 'v:missing/data'
        ? undefined
        : await failureOf(plugin.call(Controller.ControllerUnpublishVolume, { volumeId, nodeId: plugin.nodeId })),
    ];
    for (const failure of failures) assert.ok(!failure || isIgnorable(failure), `${volumeId}: ${failure?.message}`);
  }

  // The connection is removed while its volume is in use: the node lets go all the same.
  const path = await manager.mount(volume, 'alloc', readWrite, context);
  await writeFile(join(path, 'file'), 'kept');
  await rm(join(client.root, 'connections/local.yaml'));
  await manager.unmount(volume, 'alloc', readWrite);
  await client.assertClean();
});

test('in a container: its paths are not the host’s, and what it mounts is seen on the host', async (t) => {
  const client = await makeClient(t);
  const folder = join(client.root, 'data/client/csi/monolith/org.switchboard.csi');
  const inside = join(client.root, 'local-csi');
  for (const path of [folder, inside]) await mkdir(path, { recursive: true });
  execFileSync('mount', ['--bind', '--make-shared', folder, folder]);
  // As a container runtime mounts a folder "bidirectional": elsewhere in a mount namespace of its own, in the same peer group as on the host.
  const script = `mount --make-private "$(findmnt --noheadings --output TARGET --target ${inside})" &&
    mount --rbind ${folder} ${inside} && mount --make-rprivate ${folder} && umount --lazy ${folder} && exec "$@"`;
  const under = ['unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c', script, 'sh'];
  const plugin = await client.start('monolith', { under, stagePublishBaseDir: inside });
  const manager = volumeManager(() => plugin);
  const volume = await nomadServer([plugin]).create({ id: 'data' });

  const path = await manager.mount(volume, 'alloc', readWrite);
  await writeFile(join(path, 'file'), 'kept');
  assert.equal(await readFile(join(client.base, 'v/data/file'), 'utf8'), 'kept');
  assert.ok((await mountsBelow(folder)).includes(path));
  assert.deepEqual(await mountsBelow(inside), []);
  await plugin.killAndRestart();
  await manager.mount(volume, 'alloc', readWrite);
  assert.deepEqual(manager.calls(), ['stage', 'publish']);
  await manager.unmount(volume, 'alloc', readWrite);
  await client.assertClean([folder]);
});
