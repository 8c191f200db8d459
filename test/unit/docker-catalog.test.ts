/** Volumes by name over all connections of a real proxy. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Catalog } from '../../src/core/catalog.ts';
import type { Driver, VolumeOperations } from '../../src/core/driver.ts';
import { CallError } from '../../src/core/errors.ts';
import { singleCatalog } from '../../src/core/find-volumes.ts';
import { aCall, aSpec, failsWith, minimal, switchboard } from './proxy-stand-ins.ts';

const call = aCall();

const shown = ({ entries, failures, complete }: Awaited<ReturnType<Catalog['find']>>) => ({
  found: entries.map((entry) => [entry.connection, entry.innerId, entry.status.volume.id]),
  failed: failures.map(({ connection, error }) => [connection, error.message]),
  complete: [...complete].sort(),
});

test('a name is looked for on all connections, or on the one that it says', async (t) => {
  const { proxy, write } = await switchboard(t, {});
  for (const name of ['nas', 'san', 'ssd']) await write(name, minimal);
  const { catalog } = proxy;
  for (const connection of ['nas', 'ssd'])
    await proxy.volumes?.create(call, aSpec('data', { parameters: { connection } }));
  const everywhere = await catalog!.find(call, catalog!.parse('data'));
  assert.deepEqual(shown(everywhere), {
    found: [
      ['nas', 'data', 'v:nas/data'],
      ['ssd', 'data', 'v:ssd/data'],
    ],
    failed: [],
    complete: ['nas', 'san', 'ssd'],
  });
  assert.deepEqual(shown(await catalog!.find(call, catalog!.parse('ssd/data'))).found, [['ssd', 'data', 'v:ssd/data']]);
  assert.deepEqual(shown(await catalog!.find(call, catalog!.parse('nope/data'))).found, []);
  assert.deepEqual(shown(await catalog!.all(call)).found.length, 2);
});

test('names, ids and connections are told apart', async (t) => {
  const { proxy } = await switchboard(t, {});
  const catalog = proxy.catalog as Catalog;
  assert.deepEqual(catalog.parse('nas/a/b'), { connection: 'nas', name: 'a/b' });
  assert.deepEqual(catalog.parse('a'), { name: 'a' });
  assert.deepEqual(catalog.parse('/a'), { name: '/a' });
  assert.deepEqual(catalog.parse('nas/'), { name: 'nas/' });
  assert.deepEqual(catalog.parse('../a'), { name: '../a' });
  assert.equal(catalog.connectionOf('v:nas/a'), 'nas');
  assert.equal(catalog.connectionOf('a'), undefined);
});

test('a connection that fails, or whose file is broken, is told of beside what the others have', async (t) => {
  const { proxy, write, world, folder } = await switchboard(t, {});
  for (const name of ['nas', 'san']) await write(name, minimal);
  await writeFile(join(folder, 'typo.yaml'), 'driver: [');
  await proxy.volumes?.create(call, aSpec('data'));
  world.before = async (connection) => {
    if (connection === 'san') throw new CallError('UNAVAILABLE', 'no answer');
  };
  const { found, failed, complete } = shown(await proxy.catalog!.find(call, { name: 'data' }));
  assert.deepEqual(found, [['nas', 'data', 'v:nas/data']]);
  assert.deepEqual(complete, ['nas']);
  assert.deepEqual(failed[0], ['san', 'connection "san": no answer']);
  assert.match(String(failed[1]), /typo/);
});

test('a connection that did not answer in time is left alone for a while', async (t) => {
  const { proxy, write, world } = await switchboard(t, {});
  for (const name of ['nas', 'san']) await write(name, minimal);
  await proxy.volumes?.create(call, aSpec('data'));
  world.before = async (connection) => {
    if (connection === 'san') await new Promise(() => {});
  };
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const first = proxy.catalog!.find(call, { name: 'data' });
  while (!world.asked.includes('san ControllerGetVolume data')) await new Promise((resolve) => setImmediate(resolve));
  now = 5000;
  t.mock.timers.tick(5000);
  assert.match(String(shown(await first).failed), /san.*did not answer within 5 s/);
  const asked = world.asked.length;
  assert.match(String(shown(await proxy.catalog!.find(call, { name: 'data' })).failed), /did not answer within 5 s/);
  assert.deepEqual(world.asked.slice(asked), ['nas ControllerGetVolume data']);
  world.before = async () => {};
  now = 20_000;
  assert.deepEqual(shown(await proxy.catalog!.find(call, { name: 'data' })).failed, []);
});

test('drivers without volumes have none, drivers without get are asked by validation', async (t) => {
  const { proxy, write } = await switchboard(t, {});
  await write('manual', 'driver: memory\nmemory: { lacks: [volumes] }\n');
  await write('plain', 'driver: memory\nmemory: { lacks: [get, list] }\n');
  await proxy.volumes?.create(call, aSpec('data', { parameters: { connection: 'plain' } }));
  assert.deepEqual(shown(await proxy.catalog!.find(call, { name: 'data' })).found, [['plain', 'data', 'v:plain/data']]);
  const all = shown(await proxy.catalog!.all(call));
  assert.deepEqual([all.found, all.complete], [[], ['manual']]);
});

test('shared: every connection reaches every node', async (t) => {
  const { proxy, write } = await switchboard(t, {});
  assert.equal(await proxy.catalog!.isShared(call), false);
  await write('nas', minimal);
  assert.equal(await proxy.catalog!.isShared(call), true);
  await write('local', 'driver: memory\nmemory: { constrained: true }\n');
  assert.equal(await proxy.catalog!.isShared(call), false);
});

test('one driver alone: by the id that it gives a name, and by the id itself', async () => {
  const ids = new Set(['hash-of-data', 'old']);
  const volumes = {
    sources: new Set(),
    idFor: ({ name }) => {
      if (name === 'old') throw new CallError('INVALID_ARGUMENT', 'not such a name');
      return `hash-of-${name}`;
    },
    get: async (_call, id) => {
      if (ids.has(id)) return { volume: { id, capacityBytes: 0, context: {} }, parameters: { a: 'b' } };
      throw new CallError(id === 'down' ? 'UNAVAILABLE' : 'NOT_FOUND', `no ${id}`);
    },
    list: async (_call, { token }) => ({ entries: [], nextToken: `${Number(token ?? 0) + 1}` }),
  } as Partial<VolumeOperations> as VolumeOperations;
  const catalog = singleCatalog({ name: 'x', constrained: true, volumes, close: async () => {} } satisfies Driver);
  const find = async (name: string) => shown(await catalog.find(call, catalog.parse(name)));
  assert.deepEqual((await find('data')).found, [[undefined, 'hash-of-data', 'hash-of-data']]);
  assert.deepEqual((await find('hash-of-data')).found, [[undefined, 'hash-of-data', 'hash-of-data']]);
  assert.deepEqual((await find('old')).found, [[undefined, 'old', 'old']]);
  assert.deepEqual((await find('a/b')).found, []);
  assert.deepEqual((await find('down')).failed, [[undefined, 'no down']]);
  const [failure] = (await catalog.all(call)).failures;
  assert.ok(failsWith('INTERNAL', /does not end/)(failure?.error));
  assert.equal(await catalog.isShared(call), false);
});
