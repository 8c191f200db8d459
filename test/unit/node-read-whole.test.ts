import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withLock } from '../../src/node/keyed-lock.ts';
import { readWhole } from '../../src/node/read-whole.ts';

test('every call gets what the file says after the call, however many come at once', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'whole-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'file');
  const read = readWhole(file);
  await assert.rejects(read(), { code: 'ENOENT' });
  const large = 'x'.repeat(200_000);
  await writeFile(file, large);
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 50 }, read))), new Set([large]));
  const early = read();
  await writeFile(file, 'second');
  const late = read();
  await early;
  assert.equal(await late, 'second');
});

test('work with one key is done one after another; a caller who leaves the queue does no work', async () => {
  const order: string[] = [];
  const never = new AbortController().signal;
  const controller = new AbortController();
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const first = withLock('k', never, async () => {
    await held;
    order.push('first');
  });
  const left = withLock('k', controller.signal, async () => order.push('left'));
  const third = withLock('k', never, async () => order.push('third'));
  await withLock('other', never, async () => order.push('other'));
  controller.abort();
  await assert.rejects(left, { code: 'CANCELLED' });
  release();
  await Promise.all([first, third]);
  await assert.rejects(
    withLock('k', never, async () => {
      throw new Error('failed');
    }),
  );
  await withLock('k', never, async () => order.push('last'));
  assert.deepEqual(order, ['other', 'first', 'third', 'last']);
});
