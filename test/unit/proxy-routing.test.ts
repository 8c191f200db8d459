import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import { controllerCapabilities, nodeCapabilities, pluginCapabilities } from '../../src/core/capabilities.ts';
import { CallError } from '../../src/core/errors.ts';
import { aCall, aCapability, aSpec, failsWith, switchboard } from './proxy-stand-ins.ts';

const without = (...lacks: string[]) => `driver: memory\nmemory:\n  lacks: [${lacks.join(', ')}]\n`;
const call = aCall();

test('a volume lives on the connection of its storage class, and its handle finds it again', async (t) => {
  const { proxy, world } = await switchboard(t, { nas: 'driver: memory\nmemory: { text: hello }', san: true });
  const made = await proxy.volumes?.create(call, aSpec('v1'));
  assert.deepEqual(made, {
    id: 'v:nas/v1',
    capacityBytes: 1024,
    context: { node_attach_driver: 'hostpath', text: 'hello' },
    topology: undefined,
  });
  await proxy.volumes?.create(call, aSpec('v1', { parameters: { connection: 'san' } }));
  const query = { volumeId: 'v:nas/v1', context: {}, capabilities: [aCapability], parameters: {} };
  assert.deepEqual(await proxy.volumes?.validate(call, query), { confirmed: true });
  assert.deepEqual(await proxy.expansion?.expand(call, { volumeId: 'v:nas/v1', capacity: { requiredBytes: 4096 } }), {
    capacityBytes: 4096,
    nodeExpansionRequired: false,
  });
  const got = await proxy.volumes?.get?.(call, 'v:nas/v1');
  assert.equal(got?.volume.id, 'v:nas/v1');
  assert.equal(got?.publishedNodeIds, undefined);
  await proxy.volumes?.modify?.(call, 'v:nas/v1', { iops: '1' });
  await proxy.volumes?.delete(call, 'v:nas/v1');
  assert.deepEqual([...(world.volumes.get('san')?.keys() ?? [])], ['v1']);
  assert.deepEqual(world.asked, [
    'nas CreateVolume v1',
    'san CreateVolume v1',
    'nas ValidateVolumeCapabilities v1',
    'nas ControllerExpandVolume v1',
    'nas ControllerGetVolume v1',
    'nas ControllerModifyVolume v1',
    'nas DeleteVolume v1',
  ]);
});

test('snapshots and copies carry handles outside and plain ids inside', async (t) => {
  const { proxy, world } = await switchboard(t, { nas: true, san: true });
  await proxy.volumes?.create(call, aSpec('v1'));
  const snapshot = await proxy.snapshots?.create(call, { name: 's1', sourceVolumeId: 'v:nas/v1', parameters: {} });
  assert.equal(snapshot?.id, 's:nas/v1@s1');
  assert.equal(snapshot?.sourceVolumeId, 'v:nas/v1');
  assert.deepEqual(await proxy.snapshots?.get?.(call, 's:nas/v1@s1'), snapshot);
  for (const source of [
    { type: 'snapshot', id: 's:nas/v1@s1' },
    { type: 'volume', id: 'v:nas/v1' },
  ] as const) {
    const copy = await proxy.volumes?.create(call, aSpec(`from-${source.type}`, { source }));
    assert.deepEqual(copy?.source, source);
    await assert.rejects(
      async () => proxy.volumes?.create(call, aSpec('v2', { source, parameters: { connection: 'san' } })),
      failsWith('INVALID_ARGUMENT', /"nas".*"san"/),
    );
  }
  const specs = world.requests as { source?: { id: string } }[];
  assert.deepEqual(
    specs.flatMap((spec) => spec.source?.id ?? []),
    ['v1@s1', 'v1'],
  );
  await proxy.snapshots?.delete(call, 's:nas/v1@s1');
  assert.equal(world.snapshots.get('nas')?.size, 0);
});

test('a missing, unknown or impossible connection parameter is INVALID_ARGUMENT and names the connections there are', async (t) => {
  const { proxy, world } = await switchboard(t, { nas: true, 'a..b': true });
  const create = (parameters: Record<string, string>) => async () =>
    proxy.volumes?.create(call, aSpec('v1', { parameters }));
  await assert.rejects(create({}), failsWith('INVALID_ARGUMENT', /"connection" is missing.*known are a\.\.b, nas/));
  await assert.rejects(create({ connection: '' }), failsWith('INVALID_ARGUMENT', /is missing/));
  await assert.rejects(
    create({ connection: 'nsa' }),
    failsWith('INVALID_ARGUMENT', /no connection "nsa"; known are a\.\.b, nas/),
  );
  for (const connection of [
    '../../etc/passwd',
    '..',
    '.',
    '/etc/passwd',
    'nas/../nas',
    'n\0s',
    'nas\n',
    'x'.repeat(10_240),
  ]) {
    await assert.rejects(create({ connection }), failsWith('INVALID_ARGUMENT', /is not a connection name; known are/));
  }
  assert.deepEqual(world.asked, []);
  assert.deepEqual(proxy.connections(), []);
  assert.equal((await create({ connection: 'a..b' })())?.id, 'v:a..b/v1');
});

test('a default connection serves storage classes that name none', async (t) => {
  const { proxy } = await switchboard(t, { nas: true, san: true }, { defaultConnection: 'san' });
  assert.equal((await proxy.volumes?.create(call, aSpec('v1', { parameters: {} })))?.id, 'v:san/v1');
  assert.equal((await proxy.volumes?.create(call, aSpec('v1')))?.id, 'v:nas/v1');
});

test('ids that were never given out do not exist: NOT_FOUND, and deleting them succeeds without a look at the folder', async (t) => {
  const { proxy, folder } = await switchboard(t, {});
  await rm(folder, { recursive: true });
  for (const id of [
    'nonsense',
    'v:../../etc/passwd',
    'v:nas/../x',
    'v:nas/\0',
    `v:nas/${'x'.repeat(10_240)}`,
    's:nas/v1',
  ]) {
    const notFound = failsWith('NOT_FOUND', /there is no volume/);
    await proxy.volumes?.delete(call, id);
    await proxy.publication?.unpublish(call, id, 'n=node-1');
    const query = { volumeId: id, context: {}, capabilities: [], parameters: {} };
    await assert.rejects(async () => proxy.volumes?.validate(call, query), notFound);
    await assert.rejects(async () => proxy.volumes?.get?.(call, id), notFound);
    await assert.rejects(async () => proxy.volumes?.modify?.(call, id, {}), notFound);
    await assert.rejects(async () => proxy.expansion?.expand(call, { volumeId: id, capacity: {} }), notFound);
    await assert.rejects(
      async () => proxy.snapshots?.create(call, { name: 's', sourceVolumeId: id, parameters: {} }),
      notFound,
    );
    await assert.rejects(
      async () => proxy.volumes?.create(call, aSpec('v', { source: { type: 'volume', id } })),
      notFound,
    );
  }
  await proxy.snapshots?.delete(call, 'nonsense');
  await assert.rejects(
    async () => proxy.snapshots?.get?.(call, 'nonsense'),
    failsWith('NOT_FOUND', /there is no snapshot/),
  );
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v', { source: { type: 'snapshot', id: 'nonsense' } })),
    failsWith('NOT_FOUND'),
  );
});

test('a good id whose connection file is missing is FAILED_PRECONDITION, for deletes too', async (t) => {
  const { proxy } = await switchboard(t, {});
  const gone = failsWith('FAILED_PRECONDITION', /^connection "nas": there is no file .*nas\.yaml/);
  await assert.rejects(async () => proxy.volumes?.delete(call, 'v:nas/v1'), gone);
  await assert.rejects(async () => proxy.snapshots?.delete(call, 's:nas/v1'), gone);
  await assert.rejects(async () => proxy.volumes?.get?.(call, 'v:nas/v1'), gone);
  await assert.rejects(async () => proxy.publication?.unpublish(call, 'v:nas/v1', 'n=node-1'), gone);
  await assert.rejects(async () => proxy.expansion?.expand(call, { volumeId: 'v:nas/v1', capacity: {} }), gone);
  assert.deepEqual(proxy.connections(), []);
});

test('a handle over 128 bytes is refused before anything is created; drivers know how much room they have', async (t) => {
  const { proxy, world } = await switchboard(t, { nas: true, long: without('shortening') });
  const name = 'x'.repeat(128);
  const made = await proxy.volumes?.create(call, aSpec(name));
  assert.equal(made?.id, `v:nas/${'x'.repeat(122)}`);
  assert.equal(world.made[0]?.environment.maxIdBytes, 122);
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec(name, { parameters: { connection: 'long' } })),
    failsWith('INVALID_ARGUMENT', /^connection "long": .*135 bytes \(128 of the name, 7 for the connection\)/),
  );
  assert.equal(world.volumes.get('long')?.size, 0);
});

test('an error of a driver keeps its code and says once which connection it is from', async (t) => {
  const { proxy, world } = await switchboard(t);
  world.before = async () => {
    throw new CallError('RESOURCE_EXHAUSTED', 'the pool is full');
  };
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v1')),
    (error: CallError) => {
      assert.equal(error.message, 'connection "nas": the pool is full');
      return error.code === 'RESOURCE_EXHAUSTED';
    },
  );
  world.before = async () => {
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  };
  await assert.rejects(
    async () => proxy.volumes?.delete(call, 'v:nas/v1'),
    failsWith('RESOURCE_EXHAUSTED', /^connection "nas": ENOSPC/),
  );
});

test('what a driver cannot do is UNIMPLEMENTED and names connection and driver', async (t) => {
  const { proxy } = await switchboard(t, {
    nas: without('volumes', 'snapshots', 'expansion'),
    half: without('get', 'cloning', 'modify'),
  });
  const cannot = failsWith('UNIMPLEMENTED', /^connection "(nas|half)": its driver memory has no \w+/);
  await assert.rejects(async () => proxy.volumes?.create(call, aSpec('v1')), cannot);
  await assert.rejects(async () => proxy.volumes?.delete(call, 'v:nas/v1'), cannot);
  await assert.rejects(
    async () => proxy.snapshots?.create(call, { name: 's', sourceVolumeId: 'v:nas/v1', parameters: {} }),
    cannot,
  );
  await assert.rejects(async () => proxy.snapshots?.delete(call, 's:nas/v1'), cannot);
  await assert.rejects(async () => proxy.expansion?.expand(call, { volumeId: 'v:nas/v1', capacity: {} }), cannot);
  await assert.rejects(async () => proxy.volumes?.get?.(call, 'v:half/v1'), cannot);
  const parameters = { connection: 'half' };
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v1', { parameters, source: { type: 'volume', id: 'v:half/v0' } })),
    failsWith('INVALID_ARGUMENT', /cannot fill a volume from a volume/),
  );
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v1', { parameters, mutableParameters: { iops: '1' } })),
    failsWith('INVALID_ARGUMENT', /no mutable parameters/),
  );
});

test('the place that the operator configured decides, and the driver is not bothered with it', async (t) => {
  const places =
    'proxy: { perDriver: { topology: [{ requirements: { zone: a }, extra: { example.org/x: y } }, { requirements: { zone: b } }] } }';
  const { proxy, world } = await switchboard(
    t,
    { nas: `driver: memory\n${places}` },
    { nodeTopology: { prefix: 'p.org' } },
  );
  const want = (...zones: string[]) => ({ requisite: zones.map((zone) => ({ 'p.org/zone': zone })), preferred: [] });
  const made = await proxy.volumes?.create(call, aSpec('v1', { topology: want('x', 'a') }));
  assert.deepEqual(made?.topology, [{ 'p.org/zone': 'a', 'example.org/x': 'y' }]);
  assert.deepEqual((world.requests[0] as { topology: unknown }).topology, { requisite: [], preferred: [] });
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v2', { topology: want('x') })),
    failsWith('RESOURCE_EXHAUSTED', /^connection "nas": .*p\.org\/zone=a.*p\.org\/zone=x/),
  );
  assert.equal(world.volumes.get('nas')?.size, 1);
});

test('without a configured place a local driver answers with the labels that this node reports, and sees the request', async (t) => {
  const topologyOf = async (file: string, nodeTopology: object) => {
    const { proxy, world } = await switchboard(t, { nas: file }, { nodeTopology });
    const topology = { requisite: [{ 'p.org/node': 'node-1' }], preferred: [] };
    const made = await proxy.volumes?.create(call, aSpec('v1', { topology }));
    assert.deepEqual((world.requests[0] as { topology: unknown }).topology, topology);
    const info = await proxy.node?.info(call);
    return { topology: made?.topology, node: info?.topology };
  };
  const local = 'driver: memory\nmemory: { constrained: true }';
  assert.deepEqual(await topologyOf(local, { type: 'node', prefix: 'p.org' }), {
    topology: [{ 'p.org/node': 'node-1' }],
    node: { 'p.org/node': 'node-1' },
  });
  assert.equal((await topologyOf('driver: memory', { type: 'node', prefix: 'p.org' })).topology, undefined);
});

test('only a driver that asks suffers when this node cannot be described', async (t) => {
  const { proxy } = await switchboard(
    t,
    { nas: true, local: 'driver: memory\nmemory: { constrained: true }' },
    { nodeTopology: { type: 'node', prefix: 'p.org' } },
    { nodeName: 'not a label' },
  );
  assert.equal((await proxy.volumes?.create(call, aSpec('v1')))?.id, 'v:nas/v1');
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v1', { parameters: { connection: 'local' } })),
    failsWith('FAILED_PRECONDITION', /^connection "local": .*"not a label"/),
  );
  await assert.rejects(async () => proxy.node?.info(call), failsWith('FAILED_PRECONDITION', /"not a label"/));
});

test('the main file lies under every connection file', async (t) => {
  const main = {
    csi: { access_modes: ['SINGLE_NODE_WRITER'] },
    node: { mount: { mount_flags: 'noatime,nodiratime' } },
  };
  const { proxy, world } = await switchboard(
    t,
    { nas: true, san: 'driver: memory\nnode: { mount: { mount_flags: ro } }' },
    {},
    { main },
  );
  await proxy.volumes?.create(call, aSpec('v1'));
  await proxy.volumes?.create(call, aSpec('v1', { parameters: { connection: 'san' } }));
  const [nas, san] = world.made.map((one) => one.options);
  assert.deepEqual(nas?.csi?.access_modes, ['SINGLE_NODE_WRITER']);
  assert.deepEqual(nas?.node?.mount?.mount_flags, ['noatime', 'nodiratime']);
  assert.deepEqual(san?.node?.mount?.mount_flags, ['ro']);
});

test('a proxy behind the proxy is refused in plain words', async (t) => {
  const { proxy } = await switchboard(t, { nas: 'driver: proxy\nproxy: { configFolder: /x }' });
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v1')),
    failsWith('FAILED_PRECONDITION', /^connection "nas": .*nas\.yaml: a connection cannot be a proxy/),
  );
});

test('capacity of one connection, of a driver that cannot tell, and of a place elsewhere', async (t) => {
  const { proxy } = await switchboard(t, {
    nas: 'driver: memory\nmemory: { capacity: 300 }\nproxy: { perDriver: { topology: [{ requirements: { cluster: local } }] } }',
    dumb: without('capacity'),
  });
  const ask = async (connection: string, topology?: Record<string, string>) =>
    (await proxy.capacity?.(call, { capabilities: [], parameters: { connection }, topology }))?.availableBytes;
  assert.equal(await ask('nas'), 300);
  assert.equal(await ask('nas', { 'org.democratic-csi.topology/cluster': 'local' }), 300);
  assert.equal(await ask('nas', { 'org.democratic-csi.topology/cluster': 'other' }), 0);
  assert.equal(await ask('dumb'), Number.MAX_SAFE_INTEGER);
  await assert.rejects(ask('none'), failsWith('INVALID_ARGUMENT', /known are dumb, nas/));
});

test('capacity of all connections is their sum, and the largest one bounds a volume', async (t) => {
  const { proxy, world, log, environment } = await switchboard(t, {
    big: 'driver: memory\nmemory: { capacity: 300 }',
    small: 'driver: memory\nmemory: { capacity: 20 }',
    dumb: without('capacity'),
    broken: 'driver: [',
  });
  const logged = detachedContext(environment.log);
  const ask = async () => proxy.capacity?.(logged, { capabilities: [], parameters: {} });
  assert.deepEqual(await ask(), { availableBytes: 320, maximumVolumeBytes: 300 });
  assert.ok(log.some((line) => /left out of the capacity.*broken/.test(line)));
  world.before = async (connection) => {
    if (connection === 'big') throw new CallError('UNAVAILABLE', 'unplugged');
  };
  assert.deepEqual(await ask(), { availableBytes: 20, maximumVolumeBytes: 20 });
});

test('capacity when nothing can tell', async (t) => {
  const ask = async (files: Record<string, string>) => {
    const { proxy, world } = await switchboard(t, files);
    world.before = async () => {
      throw new CallError('INTERNAL', 'burnt');
    };
    return proxy.capacity?.(call, { capabilities: [], parameters: {} });
  };
  assert.deepEqual(await ask({ dumb: without('capacity') }), { availableBytes: Number.MAX_SAFE_INTEGER });
  assert.deepEqual(await ask({}), { availableBytes: 0, maximumVolumeBytes: 0 });
  await assert.rejects(ask({ nas: 'driver: memory' }), failsWith('UNAVAILABLE', /connection "nas": burnt/));
});

test('publishing gives each driver the node id it understands, and is success where there is nothing to do', async (t) => {
  const { proxy, world } = await switchboard(
    t,
    {
      nas: 'driver: memory\nproxy: { perDriver: { nodeIdType: hostname, nodeIdMap: { host-1: "7" } } }',
      iscsi: 'driver: memory\nproxy: { perDriver: { nodeIdType: iqn } }',
      plain: without('publication'),
    },
    { nodeId: { parts: { hostname: true } } },
  );
  const nodeId = (await proxy.node?.info(call))?.nodeId ?? '';
  assert.equal(nodeId, 'n=node-1/h=host-1');
  const publish = async (volumeId: string, node = nodeId) =>
    proxy.publication?.publish(call, { volumeId, nodeId: node, capability: aCapability, readonly: false, context: {} });
  assert.deepEqual(await publish('v:nas/v1'), { lun: '3' });
  assert.deepEqual(await publish('v:plain/v1'), {});
  assert.deepEqual(await publish('v:plain/v1', 'n=node-2/ix=1'), {}, 'a prefix that only other connections need');
  await proxy.publication?.unpublish(call, 'v:nas/v1', nodeId);
  await proxy.publication?.unpublish(call, 'v:nas/v1', undefined);
  await proxy.publication?.unpublish(call, 'v:plain/v1', 'whatever');
  assert.deepEqual(world.asked, [
    'nas ControllerPublishVolume v1 7',
    'nas ControllerUnpublishVolume v1 7',
    'nas ControllerUnpublishVolume v1 undefined',
  ]);
  await assert.rejects(publish('v:iscsi/v1'), failsWith('INVALID_ARGUMENT', /^connection "iscsi": .*iqn/));
  await assert.rejects(publish('v:plain/v1', 'worker-3'), failsWith('NOT_FOUND', /"worker-3"/));
  await assert.rejects(publish('nonsense'), failsWith('NOT_FOUND'));
});

test('publishing is advertised only when the configuration lists it', async (t) => {
  const usual = await switchboard(t);
  const names = controllerCapabilities(usual.proxy);
  for (const name of [
    'CREATE_DELETE_VOLUME',
    'LIST_VOLUMES',
    'GET_CAPACITY',
    'CREATE_DELETE_SNAPSHOT',
    'LIST_SNAPSHOTS',
    'CLONE_VOLUME',
    'EXPAND_VOLUME',
    'GET_VOLUME',
  ] as const) {
    assert.ok(names.includes(name), name);
  }
  for (const name of ['PUBLISH_UNPUBLISH_VOLUME', 'PUBLISH_READONLY', 'MODIFY_VOLUME'] as const) {
    assert.ok(!names.includes(name), name);
  }
  assert.deepEqual(pluginCapabilities(usual.proxy), ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS']);
  assert.ok(
    ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS', 'EXPAND_VOLUME'].every((name) =>
      nodeCapabilities(usual.proxy).some((one) => one === name),
    ),
  );
  const rpc = ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'];
  const listed = await switchboard(t, {}, {}, { main: { service: { controller: { capabilities: { rpc } } } } });
  assert.deepEqual(controllerCapabilities(listed.proxy), rpc);
});

test('the call learns which connection and driver it went to', async (t) => {
  const { proxy } = await switchboard(t);
  const labels: string[] = [];
  const labelled: CallContext = { ...call, label: (name, value) => void labels.push(`${name}=${value}`) };
  await proxy.volumes?.create(labelled, aSpec('v1'));
  assert.deepEqual(labels, ['connection=nas', 'driver=memory']);
});

test('equal calls share one run and different ones exclude each other, each connection for itself', async (t) => {
  const { proxy, world } = await switchboard(t, { nas: true, san: true });
  const gate = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  let starts = 0;
  world.before = async () => {
    if (++starts === 2) started.resolve();
    await gate.promise;
  };
  const first = proxy.volumes?.create(call, aSpec('v1'));
  const same = proxy.volumes?.create(call, aSpec('v1'));
  const elsewhere = proxy.volumes?.create(call, aSpec('v1', { parameters: { connection: 'san' } }));
  await started.promise;
  await assert.rejects(
    async () => proxy.volumes?.create(call, aSpec('v1', { capacity: { requiredBytes: 5 } })),
    failsWith('ABORTED', /^connection "nas": CreateVolume v1 must wait/),
  );
  gate.resolve();
  assert.deepEqual(await first, await same);
  assert.equal((await elsewhere)?.id, 'v:san/v1');
  assert.deepEqual(world.asked.toSorted(), ['nas CreateVolume v1', 'san CreateVolume v1']);
});

test('a connection that hangs delays no other, and leaves with its caller', async (t) => {
  const { proxy, world } = await switchboard(t, { hung: true, nas: true });
  const stuck = Promise.withResolvers<void>();
  world.before = (connection, _operation, { signal }) => {
    if (connection !== 'hung') return Promise.resolve();
    stuck.resolve();
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const controller = new AbortController();
  const hanging = proxy.volumes?.create(aCall(controller.signal), aSpec('v1', { parameters: { connection: 'hung' } }));
  const outcome = assert.rejects(async () => hanging, failsWith('CANCELLED', /^connection "hung"/));
  await stuck.promise;
  assert.equal((await proxy.volumes?.create(call, aSpec('v1')))?.id, 'v:nas/v1');
  controller.abort(new CallError('CANCELLED', 'gone'));
  await outcome;
});

test('probing fails when the folder is not there', async (t) => {
  const { proxy, folder } = await switchboard(t);
  await proxy.probe?.(call);
  await rm(folder, { recursive: true });
  await assert.rejects(async () => proxy.probe?.(call), failsWith('FAILED_PRECONDITION', new RegExp(join(folder))));
});
