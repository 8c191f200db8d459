/** Looking at the connections' files without using them, as status pages and metrics do. */
import assert from 'node:assert/strict';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { aCall, aSpec, minimal, type Switchboard, switchboard } from './proxy-stand-ins.ts';

const states = ({ proxy }: Switchboard) => proxy.connections().map(({ name, state }) => `${name} ${state}`);

test('a file that came, broke, was mended or went is noticed without a call', async (t) => {
  const board = await switchboard(t, { nas: true });
  assert.deepEqual(states(board), []);
  await board.proxy.lookAtConnections();
  assert.deepEqual(states(board), ['nas ok']);
  await board.write('nas', 'driver: [');
  await board.write('new');
  await board.proxy.lookAtConnections();
  assert.deepEqual(states(board), ['nas broken', 'new ok']);
  assert.match(board.proxy.connections()[0]?.problem ?? '', /nas\.yaml:1/);
  await board.write('nas', minimal);
  await unlink(join(board.folder, 'new.yaml'));
  await board.proxy.lookAtConnections();
  assert.deepEqual(states(board), ['nas ok']);
});

test('an unchanged file is loaded once, and nothing is asked of its storage', async (t) => {
  const board = await switchboard(t);
  for (let i = 0; i < 5; i++) await board.proxy.lookAtConnections();
  assert.equal(board.world.made.length, 1);
  assert.deepEqual(board.world.asked, []);
});

test('without caching, looking keeps no driver and makes none anew while the file is the same', async (t) => {
  const board = await switchboard(t, { nas: true }, { cacheTimeoutMinutes: 0 });
  for (let i = 0; i < 5; i++) await board.proxy.lookAtConnections();
  assert.deepEqual(states(board), ['nas idle']);
  assert.deepEqual(
    board.world.made.map(({ closed }) => closed),
    [1],
  );
  await board.write('nas', 'driver: nothing\n');
  await board.proxy.lookAtConnections();
  assert.deepEqual(states(board), ['nas broken']);
});

test('a driver in use is not closed by a look', async (t) => {
  const board = await switchboard(t, { nas: true }, { cacheTimeoutMinutes: 0 });
  const reached = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  board.world.before = async () => {
    reached.resolve();
    await open.promise;
  };
  const creating = board.proxy.volumes?.create(aCall(), aSpec('v'));
  await reached.promise;
  await board.proxy.lookAtConnections();
  assert.deepEqual(states(board), ['nas ok']);
  assert.deepEqual(
    board.world.made.map(({ closed }) => closed),
    [0],
  );
  open.resolve();
  await creating;
});

test('operations on the node are told with what they wait for and who waits for them', async (t) => {
  const board = await switchboard(t);
  const reached = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  const { node } = board.proxy;
  assert.ok(node);
  await board.proxy.volumes?.create(aCall(), aSpec('v'));
  board.world.before = async (_name, _operation, call) => {
    await call.waitingFor('`mount` of nas1:/tank', async () => {
      reached.resolve();
      await open.promise;
    });
  };
  const request = {
    volumeId: 'v:nas/v',
    targetPath: '/t',
    capability: { type: 'block', mode: 'SINGLE_NODE_WRITER' } as const,
    readonly: false,
    context: {},
    publishContext: {},
  };
  const publishing = [node.publish({ ...aCall(), requestId: 'one' }, request)];
  await reached.promise;
  publishing.push(node.publish({ ...aCall(), requestId: 'two' }, request));
  const [operation] = board.proxy.operations();
  assert.equal(operation?.title, 'NodePublishVolume v:nas/v');
  assert.equal(operation.waitingFor, '`mount` of nas1:/tank');
  assert.deepEqual(operation.callers, ['one', 'two']);
  open.resolve();
  await Promise.all(publishing);
  assert.deepEqual(board.proxy.operations(), []);
});
