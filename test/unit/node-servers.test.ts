import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { createServers } from '../../src/node/servers.ts';

const call = detachedContext(silentLogger);
const late = () => Promise.reject(new CallError('DEADLINE_EXCEEDED', 'nothing for 5 s'));
const fine = () => Promise.resolve('fine');
const refusal = (message: RegExp) => ({ name: 'CallError', code: 'UNAVAILABLE', message });

function site() {
  const clock = { now: 1000 };
  const servers = createServers({ now: () => clock.now });
  return {
    clock,
    servers,
    ask: (work: () => Promise<unknown>, name = 'nfs a') => servers.ask(call, name, 'look', work),
  };
}

test('a silent server is left alone, longer each time up to a limit; the first answer brings it back; others notice nothing', async () => {
  const { clock, servers, ask } = site();
  await assert.rejects(ask(late), refusal(/^nothing for 5 s$/));
  let asked = 0;
  const count = async () => void asked++;
  for (const pause of [5, 10, 20, 40, 60, 60]) {
    clock.now += pause * 1000 - 1;
    await assert.rejects(ask(count), refusal(/nfs a does not answer since .* asked again in 1 s \(nothing for 5 s\)/));
    clock.now += 1;
    await assert.rejects(ask(late), refusal(/nothing/));
    assert.equal(await ask(fine, 'nfs b'), 'fine');
  }
  assert.equal(asked, 0);
  assert.equal(servers.isSilent('nfs a'), true);
  clock.now += 60_000;
  assert.equal(await ask(fine), 'fine');
  assert.equal(servers.isSilent('nfs a'), false);
  await ask(count);
  assert.equal(asked, 1);
});

test('only one call tries whether it is back, and one that is broken off tells nothing', async () => {
  const { clock, servers, ask } = site();
  await assert.rejects(ask(late));
  clock.now += 5000;
  const controller = new AbortController();
  const trial = servers.ask({ ...call, signal: controller.signal }, 'nfs a', 'look', async () => {
    await assert.rejects(ask(fine), refusal(/it is being asked just now/));
    controller.abort(new CallError('CANCELLED', 'gone'));
    throw new CallError('CANCELLED', 'gone');
  });
  await assert.rejects(trial, { code: 'CANCELLED' });
  assert.equal(servers.isSilent('nfs a'), true);
  assert.equal(await ask(fine), 'fine');
});

test('what a server refuses shows that it is there; what is wrong here does not', async () => {
  for (const [code, silent] of [
    ['NOT_FOUND', false],
    ['PERMISSION_DENIED', false],
    ['FAILED_PRECONDITION', true],
    ['UNAVAILABLE', true],
  ] as const) {
    const { clock, servers, ask } = site();
    await assert.rejects(ask(late));
    clock.now += 5000;
    await assert.rejects(
      ask(() => Promise.reject(new CallError(code, 'no'))),
      { code, message: 'no' },
    );
    assert.equal(servers.isSilent('nfs a'), silent, code);
  }
});

test('of many calls only some ask at once; the rest fail with the first, or get their turn', async () => {
  const { servers, ask } = site();
  let atOnce = 0;
  let most = 0;
  const gate = Promise.withResolvers<void>();
  const work = async () => {
    most = Math.max(most, ++atOnce);
    await gate.promise;
    atOnce--;
  };
  const all = Promise.all(Array.from({ length: 40 }, () => ask(work)));
  gate.resolve();
  await all;
  assert.equal(most, 16);

  const hang = Promise.withResolvers<void>();
  let asked = 0;
  const hanging = Array.from({ length: 40 }, () =>
    ask(async () => {
      asked++;
      await hang.promise;
      return late();
    }).catch((error: unknown) => error),
  );
  const leaver = new AbortController();
  const leaving = servers.ask({ ...call, signal: leaver.signal }, 'nfs a', 'look', fine);
  leaver.abort(new CallError('CANCELLED', 'gone'));
  await assert.rejects(leaving, { code: 'CANCELLED' });
  hang.resolve();
  const errors = await Promise.all(hanging);
  assert.ok(errors.every((error) => error instanceof CallError && error.code === 'UNAVAILABLE'));
  assert.equal(asked, 16);
  await assert.rejects(ask(fine), refusal(/asked again in 5 s/));
});

test('children that cannot be ended keep their server from being asked for more of them', async () => {
  const { clock, servers } = site();
  const ends: (() => void)[] = [];
  const stuck = () =>
    servers.ask(call as CallContext, 'nfs a', 'mount', ({ onAbandoned }) => {
      onAbandoned(new Promise<void>((resolve) => ends.push(resolve)));
      return late();
    });
  for (let round = 0; round < 4; round++) {
    await assert.rejects(stuck(), refusal(/nothing/));
    clock.now += 60_000;
  }
  await assert.rejects(stuck(), refusal(/4 programs that asked it before cannot be ended/));
  assert.equal(ends.length, 4);
  ends[0]?.();
  await new Promise(setImmediate);
  assert.equal(await servers.ask(call, 'nfs a', 'mount', fine), 'fine');
});
