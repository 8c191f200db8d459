/** Volumes that exist already, declared in a connection and not, from the orchestrator's first call to its last: the real server with real mounts. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type * as csi from '../../src/generated/csi.js';
import { VolumeCapability } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { readMountTable } from '../../src/node/mount-table.ts';
import { mountsBelow } from '../conformance/leftovers.ts';
import { deleteVolume, volumeRequest, writer } from './csi-calls.ts';
import { dockerClient } from './docker-client.ts';
import { enterMountNamespace } from './node-support.ts';
import { assertAtRest, makeSite, type Server, type Site } from './server-under-test.ts';

enterMountNamespace(import.meta.url);

const { Controller, Node } = services;
const skip = !existsSync('/dev/fuse') && 'there is no /dev/fuse';

interface Bench {
  readonly site: Site;
  readonly server: Server;
}

/** A connection `manual` with volumes of these contexts, beside one of another driver. */
async function bench(t: TestContext, contexts: (site: Site) => Readonly<Record<string, object>>): Promise<Bench> {
  const site = await makeSite(t);
  const volumes = Object.fromEntries(
    Object.entries(contexts(site)).map(([name, context]) => [name, { context, size: '1Gi' }]),
  );
  await site.connect('manual', stringify({ driver: 'node-manual', 'node-manual': { volumes } }));
  for (const name of ['mnt', 'folder']) await mkdir(site.path(name));
  const env = { SWITCHBOARD_DOCKER_ALLOW_UNSEEN_MOUNTS: 'true' };
  return { site, server: await site.start({ env }) };
}

const contextOf = (site: Site, kind: string) => ({ node_attach_driver: kind, path: site.path('folder') });

async function find(server: Server, name: string): Promise<csi.Volume> {
  const { volume } = await server.call(Controller.CreateVolume, volumeRequest(name, { connection: 'manual' }));
  assert.ok(volume);
  return volume;
}

interface NodeSide {
  stage(): Promise<void>;
  unstage(): Promise<void>;
  /** Gives the path. */
  publish(name: string, readonly?: boolean): Promise<string>;
  unpublish(name: string): Promise<void>;
}

function onNode({ site, server }: Bench, volume: csi.Init<csi.Volume>, secrets: Record<string, string> = {}): NodeSide {
  const { volumeId = '', volumeContext = {} } = volume;
  const stagingTargetPath = site.path('mnt', `stage-${volumeId.replaceAll(/\W/g, '-')}`);
  const request = { volumeId, volumeContext, stagingTargetPath, secrets, volumeCapability: writer };
  const target = (name: string) => site.path('mnt', name);
  return {
    stage: async () => void (await server.call(Node.NodeStageVolume, request)),
    unstage: async () => void (await server.call(Node.NodeUnstageVolume, { volumeId, stagingTargetPath })),
    async publish(name, readonly = false) {
      await server.call(Node.NodePublishVolume, { ...request, targetPath: target(name), readonly });
      return target(name);
    },
    unpublish: async (name) =>
      void (await server.call(Node.NodeUnpublishVolume, { volumeId, targetPath: target(name) })),
  };
}

for (const kind of ['hostpath', 'bind']) {
  test(`a declared folder: found, staged, published, written to, given back, and never removed: ${kind}`, async (t) => {
    const { site, server } = await bench(t, (made) => ({ here: contextOf(made, kind) }));
    await writeFile(site.path('folder/before'), 'kept');
    const volume = await find(server, 'here');
    assert.deepEqual(
      [volume.volumeId, volume.capacityBytes, volume.volumeContext],
      ['v:manual/here', 2 ** 30, { ...contextOf(site, kind), provisioner_driver: 'node-manual' }],
    );
    const { confirmed } = await server.call(Controller.ValidateVolumeCapabilities, {
      ...{ volumeId: volume.volumeId, volumeContext: volume.volumeContext, volumeCapabilities: [writer] },
    });
    assert.deepEqual(confirmed?.volumeCapabilities.length, 1);
    const node = onNode({ site, server }, volume);
    await node.stage();
    await node.stage();
    const [rw, ro] = [await node.publish('rw'), await node.publish('ro', true)];
    await writeFile(join(rw, 'after'), 'written');
    assert.equal(await readFile(join(ro, 'after'), 'utf8'), 'written');
    await assert.rejects(writeFile(join(ro, 'no'), ''), { code: 'EROFS' });
    const stats = await server.call(Node.NodeGetVolumeStats, { volumeId: volume.volumeId, volumePath: rw });
    assert.ok((stats.usage[0]?.total ?? 0) > 0);
    for (const name of ['rw', 'ro']) await node.unpublish(name);
    await node.unstage();
    await node.unstage();
    for (let times = 0; times < 2; times++) await deleteVolume(server, volume.volumeId);
    assert.deepEqual(await readdir(site.path('folder')), ['after', 'before']);
    await assertAtRest(site, server);
  });
}

test('volumes of the connection: listed beside those of others, and only those that are declared are found', async (t) => {
  const { site, server } = await bench(t, () => ({
    media: { node_attach_driver: 'nfs', server: 'nas.example.org', share: '/media' },
    disk: { node_attach_driver: 'iscsi', iqn: 'iqn.2003-01.org.example:d', portal: '10.0.0.1', lun: 0 },
  }));
  await server.call(Controller.CreateVolume, volumeRequest('local'));
  const { entries } = await server.call(Controller.ListVolumes, {});
  assert.deepEqual(entries.map(({ volume }) => volume?.volumeId).toSorted(), [
    'v:local/local',
    'v:manual/disk',
    'v:manual/media',
  ]);
  assert.equal((await find(server, 'disk')).volumeContext.lun, '0');
  await assert.rejects(find(server, 'other'), {
    code: 'FAILED_PRECONDITION',
    message: /none is declared as "other"; declared are media, disk/,
  });
  const block = { block: {}, accessMode: { mode: VolumeCapability.AccessMode.Mode.SINGLE_NODE_WRITER } };
  const asBlock = { ...volumeRequest('media', { connection: 'manual' }), volumeCapabilities: [block] };
  await assert.rejects(server.call(Controller.CreateVolume, asBlock), { code: 'INVALID_ARGUMENT' });
  await deleteVolume(server, 'v:local/local');
  await assertAtRest(site, server);
});

test('a volume that only the orchestrator knows of', async (t) => {
  const { site, server } = await bench(t, () => ({}));
  const volumeContext = { ...contextOf(site, 'hostpath'), provisioner_driver: 'node-manual' };
  const node = onNode({ site, server }, { volumeId: 'v:manual/by-hand', volumeContext });
  await node.stage();
  await writeFile(join(await node.publish('t'), 'file'), '');
  assert.deepEqual(await readdir(site.path('folder')), ['file']);
  await node.unpublish('t');
  await node.unstage();
  const { node_attach_driver: _kind, ...without } = volumeContext;
  const wrong = onNode({ site, server }, { volumeId: 'v:manual/wrong', volumeContext: without });
  await assert.rejects(wrong.stage(), { code: 'INVALID_ARGUMENT', message: /node_attach_driver "" .* is not one of/ });
  await assertAtRest(site, server);
});

test('a volume that a program of its own mounts, with a secret', { skip }, async (t) => {
  const context = { node_attach_driver: 'oneclient', server: 'onedata.example.org', space_names: 'raw,results' };
  const { site, server } = await bench(t, () => ({ spaces: context }));
  await mkdir(site.path('told'));
  const standIn = fileURLToPath(new URL('fuse-program.ts', import.meta.url));
  await site.standIn('oneclient', `exec '${process.execPath}' '${standIn}' '${site.path('told')}' oneclient "$@"`);
  const node = onNode({ site, server }, await find(server, 'spaces'), { token: 'hush-hush' });
  await node.stage();
  const path = await node.publish('t');
  assert.equal((await readMountTable()).at(path)?.fsType, 'fuse.oneclient');
  const { args, env } = JSON.parse(await readFile(site.path('told/calls'), 'utf8'));
  assert.deepEqual(args.slice(0, 6), ['-H', context.server, '--space', 'raw', '--space', 'results']);
  assert.equal(env.ONECLIENT_ACCESS_TOKEN, 'hush-hush');
  assert.doesNotMatch(JSON.stringify(server.log), /hush/);
  await node.unpublish('t');
  await node.unstage();
  await assertAtRest(site, server);
});

test('declared volumes by Docker: with docker volume create, and without', async (t) => {
  const { site, server } = await bench(t, (made) => ({ here: contextOf(made, 'hostpath') }));
  const ask = dockerClient(site.socket);
  const good: typeof ask = async (endpoint, message) => {
    const answer = await ask(endpoint, message);
    assert.equal(answer.Err, '', endpoint);
    return answer;
  };
  await good('Create', { Name: 'here', Opts: { connection: 'manual', access: 'rwx', mountFlags: 'noatime' } });
  for (const name of ['here', 'manual/here']) {
    const { Mountpoint: at = '' } = await good('Mount', { Name: name, ID: 'one' });
    await writeFile(join(at, name.replace('/', '-')), '');
    await good('Unmount', { Name: name, ID: 'one' });
  }
  await good('Remove', { Name: 'here' });
  assert.deepEqual(await readdir(site.path('folder')), ['here', 'manual-here']);
  assert.deepEqual(await mountsBelow(site.root), []);
  await assertAtRest(site, server);
});
