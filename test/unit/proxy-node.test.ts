import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { aCall, aCapability, failsWith, type Switchboard, switchboard } from './proxy-stand-ins.ts';

const call = aCall();
const common = { capability: aCapability, context: { node_attach_driver: 'hostpath' }, publishContext: {} };

/** Every node call about a volume, by name. */
function calls({ proxy: { node } }: Switchboard, volumeId: string) {
  const stagingPath = '/staging';
  const targetPath = '/target';
  const volumePath = '/target';
  return {
    stage: async () => node?.stage?.(call, { ...common, volumeId, stagingPath }),
    publish: async () => node?.publish(call, { ...common, volumeId, stagingPath, targetPath, readonly: false }),
    stats: async () => node?.stats?.(call, { volumeId, volumePath }),
    expand: async () => node?.expand?.(call, { volumeId, volumePath, capacity: {} }),
    unpublish: async () => node?.unpublish(call, { volumeId, targetPath }),
    unstage: async () => node?.unstage?.(call, { volumeId, stagingPath }),
  };
}

const rpcs = [
  'NodeStageVolume',
  'NodePublishVolume',
  'NodeGetVolumeStats',
  'NodeExpandVolume',
  'NodeUnpublishVolume',
  'NodeUnstageVolume',
];

test('a connection that has its file on this node serves its volumes itself', async (t) => {
  const board = await switchboard(t);
  for (const one of Object.values(calls(board, 'v:nas/v1'))) await one();
  assert.deepEqual(
    board.world.asked,
    rpcs.map((rpc) => `nas ${rpc} v1`),
  );
  assert.deepEqual(board.generic, []);
});

test('volumes without a connection file, and ids of other provisioners, are served in the general way', async (t) => {
  const board = await switchboard(t);
  for (const id of ['v:elsewhere/v1', 'pvc-of-old', 'v:../x']) {
    board.generic.length = 0;
    for (const one of Object.values(calls(board, id))) await one();
    assert.deepEqual(
      board.generic,
      rpcs.map((rpc) => `${rpc} ${id}`),
    );
  }
  assert.deepEqual(board.world.asked, []);
  assert.deepEqual(board.proxy.connections(), []);
});

test('what a driver does not do on nodes is done in the general way; staging is nothing to a driver that has none', async (t) => {
  const board = await switchboard(t, {
    nas: 'driver: memory\nmemory: { lacks: [stage, unstage, stats, expand] }',
    none: 'driver: memory\nmemory: { lacks: [node] }',
  });
  for (const one of Object.values(calls(board, 'v:nas/v1'))) await one();
  assert.deepEqual(board.world.asked, ['nas NodePublishVolume v1', 'nas NodeUnpublishVolume v1']);
  assert.deepEqual(board.generic, [
    'NodeGetVolumeStats v:nas/v1',
    'NodeExpandVolume v:nas/v1',
    'NodeUnstageVolume v:nas/v1',
  ]);
  board.generic.length = 0;
  for (const one of Object.values(calls(board, 'v:none/v1'))) await one();
  assert.deepEqual(
    board.generic,
    rpcs.map((rpc) => `${rpc} v:none/v1`),
  );
});

test('a broken connection file stops mounting but never taking down', async (t) => {
  const board = await switchboard(t, { nas: 'driver: [' });
  const { stage, publish, ...others } = calls(board, 'v:nas/v1');
  await assert.rejects(stage, failsWith('FAILED_PRECONDITION', /^connection "nas": .*nas\.yaml:1/));
  await assert.rejects(publish, failsWith('FAILED_PRECONDITION', /^connection "nas"/));
  for (const one of Object.values(others)) await one();
  assert.equal(board.generic.length, 4);
});

test('node calls exclude each other by path across connections', async (t) => {
  const board = await switchboard(t, { nas: true, san: true });
  const gate = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  board.world.before = async () => {
    started.resolve();
    await gate.promise;
  };
  const first = calls(board, 'v:nas/v1').stage();
  const same = calls(board, 'v:nas/v1').stage();
  await started.promise;
  await assert.rejects(calls(board, 'v:san/v1').stage(), failsWith('ABORTED', /path \/staging is held/));
  await assert.rejects(calls(board, 'pvc-of-old').unstage(), failsWith('ABORTED', /path \/staging is held/));
  gate.resolve();
  await Promise.all([first, same]);
  assert.deepEqual(board.world.asked, ['nas NodeStageVolume v1']);
});

test('an error on the node names the connection', async (t) => {
  const board = await switchboard(t);
  board.world.before = async () => {
    throw new CallError('INTERNAL', 'mount: bad superblock');
  };
  await assert.rejects(
    calls(board, 'v:nas/v1').stage(),
    failsWith('INTERNAL', /^connection "nas": mount: bad superblock$/),
  );
});

test('the node reports its id and topology as configured', async (t) => {
  const files: Record<string, string> = {
    '/i': '## comment\nGenerateName=no\n  InitiatorName = iqn.1993-08.org.debian:01:5a4f \n',
    '/n': 'nqn.2014-08.org.nvmexpress:uuid:6f71\n',
    '/zone': 'b\n',
  };
  const board = await switchboard(
    t,
    {},
    {
      nodeId: {
        parts: { hostname: true, iqn: true, nqn: true },
        iqnPrefix: [{ shortName: 'd', prefix: 'iqn.1993-08.org.debian:01:' }],
        nqnPrefix: [{ shortName: 'u', prefix: 'nqn.2014-08.org.nvmexpress:uuid:' }],
      },
      nodeTopology: {
        type: 'custom',
        prefix: 'p.org',
        customRules: [{ keySuffix: 'zone', source: 'file', file: '/zone' }],
      },
    },
    { readFile: async (path) => files[path] ?? '', initiatorNameFile: '/i', hostNqnFile: '/n' },
  );
  assert.deepEqual(await board.proxy.node?.info(call), {
    nodeId: 'n=node-1/h=host-1/id=5a4f/vu=6f71',
    topology: { 'p.org/zone': 'b' },
  });
  assert.equal((await board.proxy.explainNodeTopology()).outcomes[0]?.rule, 'rule 1 (zone from file /zone)');
  files['/i'] = '# nothing here\n';
  await assert.rejects(
    async () => board.proxy.node?.info(call),
    failsWith('FAILED_PRECONDITION', /\/i has no InitiatorName/),
  );
});

test('what a rule misses is said once in the log', async (t) => {
  const nodeTopology = { type: 'custom', customRules: [{ keySuffix: 'zone', source: 'env', envName: 'ZONE' }] };
  const board = await switchboard(t, {}, { nodeTopology });
  for (let index = 0; index < 3; index++) await board.proxy.node?.info(call);
  assert.equal(board.log.filter((line) => line.includes('ZONE is not set')).length, 1);
});
