import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CallError } from '../../src/core/errors.ts';
import type { ProxyDriver } from '../../src/proxy/index.ts';
import { decodePageToken, encodePageToken } from '../../src/proxy/page-token.ts';
import { aCall, aSpec, failsWith, type Switchboard, switchboard } from './proxy-stand-ins.ts';

const call = aCall();

async function fill({ proxy }: Switchboard, counts: Readonly<Record<string, number>>): Promise<string[]> {
  const ids: string[] = [];
  for (const [connection, count] of Object.entries(counts)) {
    for (let index = 0; index < count; index++) {
      const volume = await proxy.volumes?.create(call, aSpec(`v${index}`, { parameters: { connection } }));
      await proxy.snapshots?.create(call, { name: 's', sourceVolumeId: volume?.id ?? '', parameters: {} });
      ids.push(volume?.id ?? '');
    }
  }
  return ids.toSorted();
}

/** All pages of at most `limit` entries, each by the token of the one before. */
async function pages(proxy: ProxyDriver, limit: number | undefined): Promise<string[][]> {
  const found: string[][] = [];
  let token: string | undefined;
  do {
    const page = await proxy.volumes?.list?.(call, { limit, token });
    found.push(page?.entries.map((one) => one.volume.id) ?? []);
    token = page?.nextToken;
  } while (token !== undefined);
  return found;
}

test('every volume of every connection is listed exactly once, whatever the page size', async (t) => {
  const board = await switchboard(t, { c: true, a: 'driver: memory\nmemory: { pageSize: 2 }', b: true });
  const all = await fill(board, { a: 5, c: 4 });
  for (const limit of [undefined, 1, 2, 3, 4, 5, 9, 100]) {
    const found = await pages(board.proxy, limit);
    assert.deepEqual(found.flat(), all, `limit ${limit}`);
    assert.ok(found.every((page) => page.length <= (limit ?? 5000)));
  }
  assert.equal((await pages(board.proxy, undefined)).length, 1);
});

test('snapshots are listed the same way', async (t) => {
  const board = await switchboard(t, { a: true, b: true });
  await fill(board, { a: 2, b: 1 });
  const first = await board.proxy.snapshots?.list?.(call, {}, { limit: 2 });
  assert.deepEqual(
    first?.entries.map((one) => one.id),
    ['s:a/v0@s', 's:a/v1@s'],
  );
  const second = await board.proxy.snapshots?.list?.(call, {}, { token: first?.nextToken });
  assert.deepEqual(
    second?.entries.map((one) => [one.id, one.sourceVolumeId]),
    [['s:b/v0@s', 'v:b/v0']],
  );
  assert.equal(second?.nextToken, undefined);
});

test('a token stays good when connections come and go', async (t) => {
  const board = await switchboard(t, { a: true, c: true });
  await fill(board, { a: 2, c: 2 });
  const first = await board.proxy.volumes?.list?.(call, { limit: 2 });
  assert.deepEqual(decodePageToken(first?.nextToken ?? ''), { connection: 'c', token: undefined });
  await board.write('0first');
  await board.write('b');
  const second = await board.proxy.volumes?.list?.(call, { token: first?.nextToken });
  assert.deepEqual(
    second?.entries.map((one) => one.volume.id),
    ['v:c/v0', 'v:c/v1'],
  );
  const beyond = await board.proxy.volumes?.list?.(call, { token: encodePageToken({ connection: 'bb', token: '1' }) });
  assert.deepEqual(beyond?.entries.length, 2);
});

test('a token that was never given out is ABORTED, be it ours or the driver’s', async (t) => {
  const board = await switchboard(t, { a: true });
  const foreign = encodePageToken({ connection: 'a', token: 'nonsense' });
  for (const token of ['invalid-token', '', 'e30', Buffer.from('["../x"]').toString('base64url'), foreign]) {
    await assert.rejects(async () => board.proxy.volumes?.list?.(call, { token }), failsWith('ABORTED'), token);
    await assert.rejects(async () => board.proxy.snapshots?.list?.(call, {}, { token }), failsWith('ABORTED'), token);
  }
});

test('tokens survive and hostile ones do not decode to anything else', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/);
  fc.assert(
    fc.property(name, fc.option(fc.string(), { nil: undefined }), (connection, token) => {
      assert.deepEqual(decodePageToken(encodePageToken({ connection, token })), { connection, token });
    }),
    { numRuns: 200 },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json().map((json) => Buffer.from(json).toString('base64url')),
      ),
      (text) => {
        try {
          assert.match(decodePageToken(text).connection, /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);
        } catch (error) {
          failsWith('ABORTED')(error);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('a connection that cannot be listed makes the list UNAVAILABLE and is named, be it dead or broken', async (t) => {
  const board = await switchboard(t, { a: true, b: true });
  board.world.before = async (connection) => {
    if (connection === 'b') throw new CallError('DEADLINE_EXCEEDED', 'no answer');
  };
  const list = async () => board.proxy.volumes?.list?.(call, {});
  await assert.rejects(list, failsWith('UNAVAILABLE', /^connection "b": no answer/));
  await board.write('b', 'driver: [');
  board.world.before = async () => {};
  assert.equal((await list())?.entries.length, 0);
  await board.write('c', 'driver: [');
  await assert.rejects(list, failsWith('UNAVAILABLE', /^connection "c": .*c\.yaml:1/));
});

test('it is left out when so configured', async (t) => {
  const board = await switchboard(t, { a: true, b: 'driver: [', c: true }, { listing: { skipUnavailable: true } });
  await fill(board, { a: 1, c: 1 });
  assert.deepEqual((await pages(board.proxy, undefined)).flat(), ['v:a/v0', 'v:c/v0']);
});

test('connections whose driver cannot list are passed over', async (t) => {
  const board = await switchboard(t, { a: 'driver: memory\nmemory: { lacks: [list, snapshots] }', b: true });
  await board.proxy.volumes?.create(call, aSpec('v0', { parameters: { connection: 'a' } }));
  await fill(board, { b: 1 });
  assert.deepEqual((await pages(board.proxy, undefined)).flat(), ['v:b/v0']);
  assert.equal((await board.proxy.snapshots?.list?.(call, {}, {}))?.entries.length, 1);
});

test('a driver that gives the same page for ever is an error, not a hang', async (t) => {
  const board = await switchboard(t, { a: 'driver: memory\nmemory: { pageSize: 0 }' });
  await fill(board, { a: 1 });
  await assert.rejects(
    async () => board.proxy.volumes?.list?.(call, {}),
    failsWith('UNAVAILABLE', /"a".*over and over/),
  );
});

test('a filter goes straight to the connection it names', async (t) => {
  const board = await switchboard(t, { a: true, b: true });
  await fill(board, { a: 2, b: 2 });
  board.world.asked.length = 0;
  const list = async (filter: { snapshotId?: string; sourceVolumeId?: string }, page = {}) =>
    board.proxy.snapshots?.list?.(call, filter, page);
  const ids = async (filter: object) => (await list(filter))?.entries.map((one) => one.id);
  assert.deepEqual(await ids({ snapshotId: 's:b/v1@s' }), ['s:b/v1@s']);
  assert.deepEqual(await ids({ sourceVolumeId: 'v:b/v0' }), ['s:b/v0@s']);
  assert.deepEqual(await ids({ snapshotId: 's:b/v1@s', sourceVolumeId: 'v:b/v1' }), ['s:b/v1@s']);
  assert.deepEqual(await ids({ snapshotId: 's:b/v1@s', sourceVolumeId: 'v:b/v0' }), []);
  assert.deepEqual(await ids({ snapshotId: 's:b/none' }), []);
  assert.ok(board.world.asked.every((line) => line.startsWith('b ')));
  assert.deepEqual(await ids({ snapshotId: 's:b/v1@s', sourceVolumeId: 'v:a/v1' }), []);
  assert.deepEqual(await ids({ snapshotId: 'nonsense' }), []);
  assert.deepEqual(await ids({ sourceVolumeId: 'nonsense' }), []);
  await assert.rejects(list({ snapshotId: 's:gone/x' }), failsWith('FAILED_PRECONDITION', /"gone"/));
});

test('a filtered list has pages too', async (t) => {
  const board = await switchboard(t, { a: 'driver: memory\nmemory: { pageSize: 1 }' });
  await board.proxy.volumes?.create(call, aSpec('v', { parameters: { connection: 'a' } }));
  for (const name of ['s1', 's2'])
    await board.proxy.snapshots?.create(call, { name, sourceVolumeId: 'v:a/v', parameters: {} });
  const filter = { sourceVolumeId: 'v:a/v' };
  const first = await board.proxy.snapshots?.list?.(call, filter, {});
  const second = await board.proxy.snapshots?.list?.(call, filter, { token: first?.nextToken });
  assert.deepEqual(
    [first, second].map((page) => page?.entries.map((one) => one.id)),
    [['s:a/v@s1'], ['s:a/v@s2']],
  );
  assert.equal(second?.nextToken, undefined);
});

test('a driver that can only get a snapshot still answers for one id', async (t) => {
  const board = await switchboard(t, { a: 'driver: memory\nmemory: { lacks: [list] }' });
  await fill(board, { a: 1 });
  const list = async (filter: object) => board.proxy.snapshots?.list?.(call, filter, {});
  assert.deepEqual(
    (await list({ snapshotId: 's:a/v0@s' }))?.entries.map((one) => one.id),
    ['s:a/v0@s'],
  );
  assert.deepEqual((await list({ snapshotId: 's:a/v0@s', sourceVolumeId: 'v:a/other' }))?.entries, []);
  assert.deepEqual((await list({ snapshotId: 's:a/none' }))?.entries, []);
  await assert.rejects(list({ sourceVolumeId: 'v:a/v0' }), failsWith('UNIMPLEMENTED', /"a".*ListSnapshots/));
});
