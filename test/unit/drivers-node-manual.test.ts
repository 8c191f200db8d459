import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { parseConfig } from '../../src/config/load.ts';
import { redacted } from '../../src/config/secret.ts';
import { detachedContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { CallError, type StatusCode } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { MountCapability, VolumeSpec } from '../../src/core/volume.ts';
import { nodeManual } from '../../src/drivers/node-manual/type.ts';

const call = detachedContext(silentLogger);

function driver(volumes?: unknown): Driver {
  const document = { driver: 'node-manual', ...(volumes !== undefined && { 'node-manual': { volumes } }) };
  const environment = {
    csiName: 'test',
    nodeName: 'n',
    nodeId: 'n',
    nodeTopology: {},
    maxIdBytes: 128,
    run: createRunner(),
    log: silentLogger,
  };
  return nodeManual.create(v.parse(nodeManual.schema, document), environment);
}

const mount: MountCapability = {
  type: 'mount',
  mode: 'SINGLE_NODE_WRITER',
  fsType: '',
  mountFlags: [],
  mountGroup: '',
};
const media = { context: { node_attach_driver: 'nfs', server: 'nas', share: '/media' }, size: '10Gi' };
const disk = { context: { node_attach_driver: 'iscsi', portal: 'nas', iqn: 'iqn.2003-01.org.x:d', lun: 0 } };

const spec = (name: string, more: Partial<VolumeSpec> = {}): VolumeSpec => ({
  name,
  capacity: {},
  capabilities: [mount],
  parameters: {},
  mutableParameters: {},
  topology: { requisite: [], preferred: [] },
  ...more,
});

const fails = (code: StatusCode) => (error: unknown) => {
  assert.ok(error instanceof CallError);
  assert.equal(error.code, code, error.message);
  return true;
};

test('without declared volumes it is a node service alone', () => {
  const { volumes, snapshots, capacity, node } = driver();
  assert.deepEqual([volumes, snapshots, capacity], [undefined, undefined, undefined]);
  assert.ok(node?.stage);
  assert.equal(node.extra.has('VOLUME_MOUNT_GROUP'), false);
});

test('declared volumes are found, never made, and never deleted', async () => {
  const { volumes } = driver({ media, 'disk[0]': disk });
  assert.ok(volumes?.get && volumes.list);
  const found = await volumes.create(call, spec('media', { capacity: { requiredBytes: 5 * 2 ** 30 } }));
  assert.deepEqual(found, {
    id: 'media',
    capacityBytes: 10 * 2 ** 30,
    context: { provisioner_driver: 'node-manual', ...media.context },
  });
  await volumes.delete(call, 'media');
  assert.deepEqual((await volumes.get(call, 'media')).volume, found);
  assert.equal((await volumes.create(call, spec('disk[0]'))).context.lun, '0');
  const first = await volumes.list(call, { limit: 1 });
  const rest = await volumes.list(call, { limit: 5, token: first.nextToken });
  assert.deepEqual(
    [...first.entries, ...rest.entries].map(({ volume }) => volume.id),
    ['disk.5b0.5d', 'media'],
  );
  await assert.rejects(volumes.create(call, spec('other')), fails('FAILED_PRECONDITION'));
  await assert.rejects(
    volumes.create(call, spec('media', { capacity: { requiredBytes: 2 ** 40 } })),
    fails('ALREADY_EXISTS'),
  );
  await assert.rejects(volumes.get(call, 'other'), fails('NOT_FOUND'));
});

test('each kind of volume is used as what it is', async () => {
  const { volumes, node } = driver({ media, disk });
  assert.ok(volumes && node?.stage);
  const block = { type: 'block', mode: 'SINGLE_NODE_WRITER' } as const;
  await assert.rejects(volumes.create(call, spec('media', { capabilities: [block] })), fails('INVALID_ARGUMENT'));
  await volumes.create(call, spec('disk', { capabilities: [block] }));
  const shared: MountCapability = { ...mount, mode: 'MULTI_NODE_MULTI_WRITER' };
  await volumes.create(call, spec('media', { capabilities: [shared] }));
  await assert.rejects(volumes.create(call, spec('disk', { capabilities: [shared] })), fails('INVALID_ARGUMENT'));
  const request = { volumeId: 'v', stagingPath: '/nowhere', publishContext: {} };
  const { stage } = node;
  const stageAs = (context: Record<string, string>, capability: MountCapability) =>
    stage(call, { ...request, context, capability });
  await assert.rejects(stageAs({ node_attach_driver: 'iscsi' }, shared), fails('INVALID_ARGUMENT'));
  await assert.rejects(stageAs({ node_attach_driver: 'nfs' }, { ...mount, fsType: 'ext4' }), fails('INVALID_ARGUMENT'));
  await assert.rejects(stageAs({ node_attach_driver: 'nosuch' }, mount), fails('INVALID_ARGUMENT'));
  await assert.rejects(stageAs({}, mount), fails('INVALID_ARGUMENT'));
});

test('a declared volume without a known attach driver is refused at the start', () => {
  assert.throws(() => driver({ x: { context: { node_attach_driver: 'nosuch' } } }), fails('INVALID_ARGUMENT'));
});

test('a declared volume without what its attach driver needs is refused at the start, and named', () => {
  for (const [context, message] of [
    [{ node_attach_driver: 'nfs', server: 'nas' }, /volume "x": .* has no `share`/],
    [{ node_attach_driver: 'iscsi', portal: 'nas', iqn: 'iqn.2003-01.org.x:d' }, /has no `lun`/],
    [{ node_attach_driver: 'nvmeof', nqn: 'nqn.2003-01.org.x:d', nsid: 1 }, /neither `transport` nor `transports`/],
    [{ node_attach_driver: 'bind' }, /path "" is not absolute/],
    [{ node_attach_driver: 'zfs-local', zfs_asset_name: '/tank' }, /is not the name of a dataset or zvol/],
    [{ node_attach_driver: 'oneclient' }, /`server` is not the host of a Oneprovider/],
    [{ node_attach_driver: 'objectivefs' }, /`filesystem` is not the name/],
  ] as const) {
    assert.throws(() => driver({ x: { context } }), { code: 'INVALID_ARGUMENT', message });
  }
});

test('keys of a context that nobody reads are pointed out, and secrets in it are not shown', () => {
  const context = { node_attach_driver: 'objectivefs', filesystem: 'a/b', 'env.SECRET_KEY': 'hush', evn: 1 };
  const spaces = { node_attach_driver: 'oneclient', server: 's', token: 'hush', lun: 1 };
  const volumes = { archive: { context }, spaces: { context: spaces } };
  const text = JSON.stringify({ driver: 'node-manual', 'node-manual': { volumes } });
  const { value, warnings, input } = parseConfig(text, 'x.yaml', () => nodeManual.schema, { env: {} });
  assert.deepEqual(
    warnings.map(({ path }) => path),
    ['node-manual.volumes.archive.context.evn', 'node-manual.volumes.spaces.context.lun'],
  );
  assert.equal(value['node-manual'].volumes?.archive?.context['env.SECRET_KEY'], 'hush');
  assert.doesNotMatch(JSON.stringify(redacted(nodeManual.schema, input)), /hush/);
});
