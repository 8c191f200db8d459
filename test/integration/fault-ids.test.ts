/** Names, ids and paths that want to get somewhere they should not: the right answer, and no look at any file outside. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { type RequestOf, services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import { createVolume, deleteVolume, outcomeOf, publish, unpublish, volumeRequest, writer } from './csi-calls.ts';
import { assertLeavesNothing, makeSite, type Server, type Site } from './server-under-test.ts';
import { cannotTrace, oneFileThread, watchFiles } from './watch-files.ts';

const { Controller, Node } = services;
const skip = (process.getuid?.() !== 0 && 'NOT TESTED: needs root') || cannotTrace;

/** Nothing that this plugin has given out can look like this; each is written as a volume's id. */
const malformed = [
  'x',
  '/',
  'v:',
  'v:local',
  'v:local/',
  'v:/x',
  'v:local/..',
  'v:local/.',
  'v:local/../victim',
  'v:local/../../victim',
  'v:local/x/../../../victim',
  'v:../victim/x',
  'v:../../etc/passwd',
  'v:.local/x',
  'v:-local/x',
  'v:local.yaml\0/x',
  'v:local\n/x',
  'v:lo cal/x',
  `v:${'l'.repeat(64)}/x`,
  'v:local/x\0',
  'v:local/x\0/../../victim',
  'v:local/x\ny',
  'v:local/x\u007f',
  'V:local/x',
  's:local/x:v',
  '../../etc/passwd',
  '/etc/passwd',
  '__proto__',
];

/** Looks right and is not there. */
const unknown = [
  'v:local/$(touch victim)',
  'v:local/;rm -rf *',
  'v:local/-rf',
  'v:local/--help',
  'v:local/*',
  'v:local/a b',
  'v:local/ü',
  'v:local/a/b',
  'v:local//etc/passwd',
  'v:local/~root',
  'v:local/...',
  'v:local/%2e%2e',
  'v:local/snapshot_driver=filecopy&snapshot_id=..%2Fvictim',
  'v:local/__proto__',
  `v:local/${'y'.repeat(255)}`,
  `v:local/${'y'.repeat(1000)}`,
];

const noConnection = ['v:nope/x', 'v:local.yaml/x', 'v:victim/x', `v:${'l'.repeat(63)}/x`];
const tooLong = [`v:local/${'z'.repeat(10_240)}`, '../'.repeat(3_400), '\n'.repeat(10_240)];

type Ask = (server: Server, id: string) => Promise<unknown>;

const capacityRange = { requiredBytes: 1 };
/** The same text as the id of a snapshot. */
const asSnapshot = (id: string) => id.replace(/^v:/, 's:');

/** Every call that takes an id, by what it answers when there is nothing of this id. */
const calls: Readonly<Record<'OK' | 'NOT_FOUND', Readonly<Record<string, Ask>>>> = {
  OK: {
    DeleteVolume: (server, volumeId) => server.call(Controller.DeleteVolume, { volumeId }),
    DeleteSnapshot: (server, id) => server.call(Controller.DeleteSnapshot, { snapshotId: asSnapshot(id) }),
    'ListSnapshots, by id': (server, id) => server.call(Controller.ListSnapshots, { snapshotId: asSnapshot(id) }),
    'ListSnapshots, by volume': (server, id) => server.call(Controller.ListSnapshots, { sourceVolumeId: id }),
    ControllerUnpublishVolume: (server, volumeId) =>
      server.call(Controller.ControllerUnpublishVolume, { volumeId, nodeId: 'n=a' }),
  },
  NOT_FOUND: {
    ControllerGetVolume: (server, volumeId) => server.call(Controller.ControllerGetVolume, { volumeId }),
    ControllerExpandVolume: (server, volumeId) =>
      server.call(Controller.ControllerExpandVolume, { volumeId, capacityRange }),
    ValidateVolumeCapabilities: (server, volumeId) =>
      server.call(Controller.ValidateVolumeCapabilities, { volumeId, volumeCapabilities: [writer] }),
    CreateSnapshot: (server, sourceVolumeId) =>
      server.call(Controller.CreateSnapshot, { sourceVolumeId, name: 'snap' }),
    GetSnapshot: (server, id) => server.call(Controller.GetSnapshot, { snapshotId: asSnapshot(id) }),
    'CreateVolume from a volume': (server, id) => createVolume(server, 'made', { fromVolume: id }),
    'CreateVolume from a snapshot': (server, id) => createVolume(server, 'made', { fromSnapshot: asSnapshot(id) }),
  },
};

/** A volume cannot be made from one that is elsewhere, wherever that is. */
const isCopy = (name: string) => name.startsWith('CreateVolume');

function expected(name: string, usual: string, id: string): string {
  if (tooLong.includes(id)) return 'INVALID_ARGUMENT';
  if (!noConnection.includes(id)) return usual;
  return isCopy(name) ? 'INVALID_ARGUMENT' : 'FAILED_PRECONDITION';
}

async function siteWithVictims(site: Site): Promise<() => Promise<unknown>> {
  for (const path of ['victim', 'data/victim', 'data/local/victim', 'connections/victim']) {
    await mkdir(site.path(path), { recursive: true });
    await writeFile(site.path(path, 'file'), path);
  }
  await writeFile(site.path('victim.yaml'), 'driver: local-hostpath');
  return async () => (await readdir(site.root, { recursive: true })).filter((path) => path.includes('victim')).sort();
}

test('ids, names and paths', { skip }, async (t) => {
  const site = await makeSite(t);
  const victims = await siteWithVictims(site);
  const before = await victims();
  const server = await site.start({ env: oneFileThread });
  await createVolume(server, 'there');
  const watch = await watchFiles(server, { file: site.path('trace'), calls: '%file' });

  await t.test('ids in every call that takes one', async () => {
    for (const [usual, ofCode] of Object.entries(calls)) {
      for (const [name, ask] of Object.entries(ofCode)) {
        for (const id of [...malformed, ...unknown, ...noConnection, ...tooLong]) {
          const { code, message } = await outcomeOf(ask(server, id));
          const title = `${name} ${JSON.stringify(id.slice(0, 60))}: ${message}`;
          assert.equal(code, expected(name, usual, id), title);
          assert.ok(message.length < 1200 && !/\p{Cc}/u.test(message.replaceAll('\u007f', '')), title);
        }
      }
    }
  });

  await t.test('connections', async () => {
    const hostile = [
      '../../etc/passwd',
      '../victim',
      '..',
      '/etc/passwd',
      'victim',
      'local\0',
      'local\n',
      'local.yaml',
      '__proto__',
    ];
    for (const connection of [...hostile, 'x'.repeat(10_240), ' local', 'local/', './local']) {
      const { code, message } = await outcomeOf(createVolume(server, 'made', { connection }));
      assert.equal(code, 'INVALID_ARGUMENT', message);
      const { code: capacity } = await outcomeOf(server.call(Controller.GetCapacity, { parameters: { connection } }));
      assert.equal(capacity, 'INVALID_ARGUMENT');
    }
  });

  await t.test('names of volumes and snapshots', async () => {
    for (const name of ['a\0b', 'a\nb', 'n'.repeat(10_240), '\u{1f4a9}'.repeat(40)]) {
      const { code, message } = await outcomeOf(createVolume(server, name));
      assert.equal(code, 'INVALID_ARGUMENT', message);
    }
    const { code } = await outcomeOf(createVolume(server, 'x'.repeat(128)));
    assert.equal(code, 'OK');
    await deleteVolume(server, await createVolume(server, 'x'.repeat(128)));
    for (const name of [
      '..',
      '.',
      '../victim',
      '../../victim',
      '/etc/passwd',
      '-rf',
      '$(id)',
      'a b',
      '.hidden',
      '%2e%2e',
      '\u{1f4a9}',
    ]) {
      const volume = await createVolume(server, name);
      assert.match(volume, /^v:local\/(?:[\w-]|\.[0-9a-f]{2})+$/);
      assert.deepEqual((await readdir(site.data('local/v'))).sort(), [volume.slice('v:local/'.length), 'there'].sort());
      await deleteVolume(server, volume);
    }
    for (const name of ['../victim', 'a/b', 'a\0b', 'a\nb', 'ü', 'n'.repeat(10_240)]) {
      const taken = server.call(Controller.CreateSnapshot, { sourceVolumeId: 'v:local/there', name });
      const { code, message } = await outcomeOf(taken);
      assert.equal(code, 'INVALID_ARGUMENT', message);
    }
    for (const [key, value] of [
      ['__proto__', 'x'],
      ['constructor', 'x'],
      ['', ''],
      ['a\0', '\0'],
    ] as const) {
      const request = volumeRequest('made');
      const parameters = Object.fromEntries([...Object.entries(request.parameters ?? {}), [key, value]]) as Record<
        string,
        string
      >;
      await server.call(Controller.CreateVolume, { ...request, parameters });
      await deleteVolume(server, 'v:local/made');
    }
  });

  // What follows looks for `mount` in many places.
  const touched = (await watch.end()).flatMap(({ line }) =>
    [...line.matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? ''),
  );
  assert.ok(touched.length > 1000);
  const outside = touched.filter(
    (path) => !site.root.startsWith(path) && !path.startsWith(`${site.root}/`) && !path.startsWith('/proc/'),
  );
  assert.deepEqual([...new Set(outside)], []);
  assert.deepEqual(
    touched.filter((path) => /\/(victim|passwd|\.\.)(\/|$)/.test(path)),
    [],
  );

  await t.test('paths and volume contexts on the node', async () => {
    const volumeContext = { node_attach_driver: 'hostpath', path: site.data('local/v/there') };
    const good = {
      volumeId: 'v:local/there',
      targetPath: site.path('target'),
      volumeCapability: writer,
      volumeContext,
    };
    const bad: readonly Partial<RequestOf<typeof Node.NodePublishVolume>>[] = [
      { targetPath: 'target' },
      { targetPath: `${site.root}/x/../victim/mounted` },
      { targetPath: `${site.root}/target\0` },
      { targetPath: `/${'t'.repeat(10_240)}` },
      { targetPath: '/' },
      { volumeContext: {} },
      { volumeContext: { ...volumeContext, path: '' } },
      { volumeContext: { ...volumeContext, path: 'v/there' } },
      { volumeContext: { ...volumeContext, path: `${site.data('local/v/there')}/../../victim` } },
      { volumeContext: { ...volumeContext, path: `${site.data('local/v/there')}\0` } },
      { volumeContext: { ...volumeContext, node_attach_driver: '__proto__' } },
      { volumeContext: { ...volumeContext, node_attach_driver: 'nfs\n' } },
      { volumeId: 'v'.repeat(10_240) },
    ];
    for (const changed of bad) {
      const { code, message } = await outcomeOf(server.call(Node.NodePublishVolume, { ...good, ...changed }));
      assert.equal(code, 'INVALID_ARGUMENT', `${JSON.stringify(changed).slice(0, 100)}: ${message}`);
    }
    for (const id of malformed) {
      for (const path of ['NodeUnpublishVolume', 'NodeUnstageVolume'] as const) {
        await server.call(Node[path] as typeof Node.NodeUnpublishVolume, {
          volumeId: id,
          targetPath: site.path('nothing'),
          ...(path === 'NodeUnstageVolume' && { stagingTargetPath: site.path('nothing') }),
        });
      }
      const { code } = await outcomeOf(
        server.call(Node.NodeGetVolumeStats, { volumeId: id, volumePath: site.path('nothing') }),
      );
      assert.equal(code, 'NOT_FOUND');
    }
    assert.deepEqual(await mountsBelow(site.root), []);
  });

  await t.test('a target whose name has everything that a name may have', async () => {
    const target = site.path('a b\n\t\\040"$(id)');
    await publish(server, 'v:local/there', target);
    await publish(server, 'v:local/there', target);
    assert.equal((await mountsBelow(site.root)).length, 1);
    await server.call(Node.NodeGetVolumeStats, { volumeId: 'v:local/there', volumePath: target });
    await unpublish(server, 'v:local/there', target);
    assert.deepEqual(await mountsBelow(site.root), []);
  });

  assert.deepEqual(await victims(), before);
  assert.equal(await readFile(site.path('data/local/victim/file'), 'utf8'), 'data/local/victim');
  await deleteVolume(server, 'v:local/there');
  for (const path of ['data/victim', 'data/local/victim']) await rm(site.path(path), { recursive: true });
  await assertLeavesNothing(site, server);
});
