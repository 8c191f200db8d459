import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { ask } from '../../src/frontends/http/observer.ts';
import { createQuestion, inTurns, type QuestionOptions } from '../../src/frontends/http/question.ts';

function question<T>(options: Pick<QuestionOptions<T>, 'ask'> & Partial<QuestionOptions<T>>) {
  return createQuestion<T>({ log: silentLogger, freshMs: 60_000, limitMs: 60_000, ...options });
}

test('asked in the background, once while the answer is fresh', async () => {
  let times = 0;
  const one = question({ ask: async () => ++times });
  assert.deepEqual(one.latest(), { state: 'asking' });
  await one.answered();
  const answer = one.latest();
  assert.ok(answer.state === 'known' && answer.value === 1);
  one.latest();
  await one.answered();
  assert.equal(times, 1);
});

test('asked again when it is no longer fresh; meanwhile the last answer counts', async () => {
  let times = 0;
  const one = question({ freshMs: 0, ask: async () => ++times });
  one.latest();
  await one.answered();
  const before = one.latest();
  assert.ok(before.state === 'known' && before.value === 1);
  await one.answered();
  const after = one.latest();
  assert.ok(after.state === 'known' && after.value === 2);
  await one.answered();
});

test('a failure is an answer', async () => {
  const rejecting = question({ ask: () => Promise.reject(new CallError('UNAVAILABLE', 'it burns')) });
  const throwing = question({
    ask: () => {
      throw new Error('at once');
    },
  });
  await ask(60_000, [rejecting, throwing]);
  const [first, second] = [rejecting.latest(), throwing.latest()];
  assert.ok(first.state === 'failed' && first.message === 'it burns');
  assert.ok(second.state === 'failed' && second.message === 'at once');
});

test('what hangs is aborted, told, and not asked again until it has ended', async () => {
  const end = Promise.withResolvers<string>();
  let signal: AbortSignal | undefined;
  let times = 0;
  const one = question({
    limitMs: 5,
    freshMs: 0,
    ask: async (call) => {
      signal = call.signal;
      times++;
      return end.promise;
    },
  });
  // Keeps the process awake: the question itself does not.
  const awake = setInterval(() => {}, 1000);
  one.latest();
  await one.answered();
  clearInterval(awake);
  assert.equal(signal?.aborted, true);
  const late = one.latest();
  assert.ok(late.state === 'failed' && /no answer within 0.005 s/.test(late.message));
  one.latest();
  assert.equal(times, 1);
  end.resolve('after all');
  await end.promise;
  await new Promise(setImmediate);
  const known = one.latest();
  assert.ok(known.state === 'known' && known.value === 'after all');
  assert.equal(times, 2);
});

test('waiting for answers ends with the patience', async () => {
  const never = question<void>({ ask: () => new Promise(() => {}) });
  await ask(1, [never]);
  assert.deepEqual(never.latest(), { state: 'asking' });
});

test('only so many at once, in the order in which they came', async () => {
  const turn = inTurns(2);
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const all = gates.map((gate, index) =>
    turn(async () => {
      begun.push(index);
      await gate.promise;
      if (index === 0) throw new Error('a failure ends a turn too');
    }).catch(() => {}),
  );
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1]);
  gates[0]?.resolve();
  await all[0];
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1, 2]);
  for (const gate of gates) gate.resolve();
  await Promise.all(all);
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
});
