import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Driver } from '../../src/core/driver.ts';
import { createLogger } from '../../src/core/logger.ts';
import { coalesced } from '../../src/proxy/coalesced.ts';
import { lookAtFile } from '../../src/proxy/connection-file.ts';
import { shareDriver } from '../../src/proxy/shared-driver.ts';
import { aCall } from './proxy-stand-ins.ts';

function share(close: () => Promise<void>, more: Partial<Driver> = {}) {
  const log: string[] = [];
  let idle = 0;
  const closed = Promise.withResolvers<void>();
  const driver: Driver = { name: 'x', constrained: false, close, ...more };
  const shared = shareDriver(driver, {
    log: createLogger({ level: 'debug', format: 'json', write: (line) => log.push(line) }),
    closeLimitMs: 5,
    onIdle: () => idle++,
    onClosed: () => closed.resolve(),
  });
  return { shared, log, closed: closed.promise, idle: () => idle };
}

test('a retired driver is closed once, after its last use, and cannot be held any more', async () => {
  let closes = 0;
  const { shared, closed, idle } = share(async () => void closes++);
  const [first, second] = [shared.hold(), shared.hold()];
  first?.();
  first?.();
  assert.equal(shared.users(), 1);
  shared.retire();
  assert.equal(closes, 0);
  second?.();
  await closed;
  await shared.close();
  assert.equal(closes, 1);
  assert.equal(idle(), 0);
  assert.equal(shared.hold(), undefined);
});

test('a driver that nobody uses any more is idle, not closed', () => {
  const { shared, idle } = share(async () => assert.fail('closed'));
  shared.hold()?.();
  assert.equal(idle(), 1);
});

test('a driver that hangs or fails in closing is left behind with a warning', async () => {
  for (const close of [
    () => new Promise<void>(() => {}),
    () => Promise.reject(new Error('stuck')),
    () => {
      throw new Error('stuck');
    },
  ]) {
    const { shared, log } = share(close);
    await shared.close();
    assert.match(log.join(''), /left behind|stuck/);
  }
});

test('a running operation is a use; telling an id is none', async () => {
  const gate = Promise.withResolvers<{ availableBytes: number }>();
  const { shared } = share(async () => {}, {
    capacity: () => gate.promise,
    volumes: { idFor: (spec: { name: string }) => spec.name } as unknown as NonNullable<Driver['volumes']>,
  });
  const running = shared.driver.capacity?.(aCall(), { capabilities: [], parameters: {} });
  assert.equal(shared.users(), 1);
  assert.equal(shared.driver.volumes?.idFor({ name: 'v1' } as never), 'v1');
  gate.resolve({ availableBytes: 1 });
  assert.deepEqual(await running, { availableBytes: 1 });
  assert.equal(shared.users(), 0);
});

test('coalesced: everybody gets a run that began after he asked, and no two run at once', async () => {
  let running = 0;
  let runs = 0;
  const gates: PromiseWithResolvers<void>[] = [];
  const run = coalesced(async () => {
    assert.equal(++running, 1);
    const number = ++runs;
    const gate = Promise.withResolvers<void>();
    gates.push(gate);
    await gate.promise;
    running--;
    if (number === 2) throw new Error('second');
    return number;
  });
  const first = run();
  const late = [run(), run(), run()];
  gates[0]?.resolve();
  assert.equal(await first, 1);
  const outcomes = Promise.allSettled(late);
  await new Promise(setImmediate);
  const later = run();
  gates[1]?.resolve();
  assert.deepEqual(
    (await outcomes).map((one) => one.status),
    ['rejected', 'rejected', 'rejected'],
  );
  await new Promise(setImmediate);
  gates[2]?.resolve();
  assert.equal(await later, 3);
  assert.equal(runs, 3);
});

test('equal looks are trusted only when the last change is long enough ago', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-file-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'nas.yaml');
  assert.deepEqual(await lookAtFile(path, undefined), { state: 'missing' });
  await writeFile(path, 'driver: memory\n');
  const first = await lookAtFile(path, undefined);
  assert.equal(first.state, 'changed');
  if (first.state !== 'changed') return;
  assert.equal(first.version.settled, false, 'a file that was just written');
  assert.equal((await lookAtFile(path, first.version)).state, 'same');
  const otherContent = { ...first.version, hash: 'another' };
  assert.equal((await lookAtFile(path, otherContent)).state, 'changed');
  assert.equal((await lookAtFile(path, { ...otherContent, settled: true })).state, 'same');
  assert.equal((await lookAtFile(path, { ...otherContent, settled: true, looks: 'others' })).state, 'changed');
});

test('work in the background is a use: the driver is idle, or closed, only when that has ended', async () => {
  const work = Promise.withResolvers<void>();
  let goesOn = true;
  let closes = 0;
  const active = { title: 'a copy', requestId: 'x', startedAt: 0, waitingFor: undefined, callers: [] };
  const { shared, closed, idle } = share(async () => void closes++, {
    background: () => (goesOn ? [active] : []),
    idle: () => work.promise,
  });
  shared.hold()?.();
  assert.deepEqual([shared.users(), idle()], [1, 0]);
  shared.hold()?.();
  shared.retire();
  assert.equal(closes, 0);
  goesOn = false;
  work.resolve();
  await closed;
  assert.equal(closes, 1);
});
