import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { createOperations, type OperationRequest } from '../../src/core/operations.ts';

const request = (over: Partial<OperationRequest> = {}): OperationRequest => ({
  title: 'CreateVolume v1',
  key: 'create v1',
  claims: [{ on: 'volume v1' }],
  limitMs: 60_000,
  ...over,
});

function caller() {
  const controller = new AbortController();
  const context: CallContext = detachedContext(silentLogger, controller.signal);
  return { context, leave: (code: 'CANCELLED' | 'DEADLINE_EXCEEDED') => controller.abort(new CallError(code, 'left')) };
}

/** Work that the test finishes, and that ends at once when it is aborted, as real work does. */
function work() {
  const { promise, resolve } = Promise.withResolvers<string>();
  let runs = 0;
  let signal: AbortSignal | undefined;
  return {
    finish: resolve,
    runs: () => runs,
    aborted: () => signal?.aborted,
    start: (call: CallContext) => {
      runs++;
      signal = call.signal;
      return new Promise<string>((done, fail) => {
        call.signal.addEventListener('abort', () => fail(call.signal.reason));
        promise.then(done);
      });
    },
  };
}

test('fifty equal requests share one run and one answer', async () => {
  const operations = createOperations();
  const one = work();
  const answers = Array.from({ length: 50 }, () => operations.run(caller().context, request(), one.start));
  one.finish('made');
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(['made']));
  assert.equal(one.runs(), 1);
  assert.deepEqual(operations.active(), []);
});

test('a different request for the same thing is told who holds it, since when and why', async () => {
  let now = 1_000_000;
  const operations = createOperations(() => now);
  const one = work();
  const first = operations.run(caller().context, request({ title: 'CreateSnapshot s1' }), (call) =>
    call.waitingFor('`zfs send` on nas1', () => one.start(call)),
  );
  now += 42_000;
  await assert.rejects(
    operations.run(caller().context, request({ title: 'DeleteVolume v1', key: 'other' }), one.start),
    {
      code: 'ABORTED',
      message: /^DeleteVolume v1 must wait: volume v1 is held by CreateSnapshot s1 \(42 s, in `zfs send` on nas1\)/,
    },
  );
  one.finish('done');
  await first;
});

test('shared claims do not exclude each other, an exclusive one excludes them', async () => {
  const operations = createOperations();
  const [a, b] = [work(), work()];
  const shared = [{ on: 'volume v1', shared: true }];
  const first = operations.run(caller().context, request({ key: 'a', claims: shared }), a.start);
  const second = operations.run(caller().context, request({ key: 'b', claims: shared }), b.start);
  await assert.rejects(operations.run(caller().context, request({ key: 'c' }), a.start), { code: 'ABORTED' });
  a.finish('a');
  b.finish('b');
  assert.deepEqual(await Promise.all([first, second]), ['a', 'b']);
});

test('a caller whose deadline passes leaves the work running, and his retry joins it', async () => {
  const operations = createOperations();
  const one = work();
  const hasty = caller();
  const first = operations.run(hasty.context, request(), one.start);
  hasty.leave('DEADLINE_EXCEEDED');
  await assert.rejects(first, { code: 'DEADLINE_EXCEEDED' });
  assert.equal(one.aborted(), false);
  const retry = operations.run(caller().context, request(), one.start);
  one.finish('made');
  assert.equal(await retry, 'made');
  assert.equal(one.runs(), 1);
});

test('the last caller who cancels takes the work with him, an earlier one does not', async () => {
  const operations = createOperations();
  const one = work();
  const [a, b] = [caller(), caller()];
  const first = operations.run(a.context, request(), one.start);
  const second = operations.run(b.context, request(), one.start);
  a.leave('CANCELLED');
  await assert.rejects(first, { code: 'CANCELLED' });
  assert.equal(one.aborted(), false);
  b.leave('CANCELLED');
  await assert.rejects(second, { code: 'CANCELLED' });
  assert.equal(one.aborted(), true);
});

test('who comes while cancelled work winds down starts afresh', async () => {
  const operations = createOperations();
  const windDown = Promise.withResolvers<void>();
  const a = caller();
  const first = operations.run(a.context, request(), async (call) => {
    await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
    await windDown.promise;
    throw call.signal.reason;
  });
  a.leave('CANCELLED');
  await assert.rejects(first, { code: 'CANCELLED' });
  const again = operations.run(caller().context, request(), async () => 'afresh');
  windDown.resolve();
  assert.equal(await again, 'afresh');
});

test('work over its limit is aborted, and the caller learns what it waited for', async () => {
  const operations = createOperations();
  const one = work();
  const call = operations.run(caller().context, request({ limitMs: 1 }), (inner) =>
    inner.waitingFor('`mount` of nas1:/tank', () => one.start(inner)),
  );
  await assert.rejects(call, { code: 'DEADLINE_EXCEEDED', message: /passed its limit .* waiting for `mount` of nas1/ });
});

test('stop aborts what runs and waits for its end', async () => {
  const operations = createOperations();
  const one = work();
  const call = operations.run(caller().context, request(), one.start);
  const failed = assert.rejects(call, { code: 'UNAVAILABLE' });
  await operations.stop();
  await failed;
  assert.deepEqual(operations.active(), []);
});

test('a removal ends what nobody waits for any more, and only that', async () => {
  const operations = createOperations();
  const removal = (on: string) =>
    request({ title: 'DeleteVolume', key: `delete ${on}`, claims: [{ on }], endsAbandoned: true });
  const copy = request({ claims: [{ on: 'volume v2' }, { on: 'volume v1', shared: true }] });
  const filling = work();
  const impatient = caller();
  const filled = operations.run(impatient.context, copy, filling.start);
  await assert.rejects(operations.run(caller().context, removal('volume v2'), work().start), { code: 'ABORTED' });
  impatient.leave('DEADLINE_EXCEEDED');
  await assert.rejects(filled, { code: 'DEADLINE_EXCEEDED' });
  // The source of a copy is only shared by it: that it is removed is no reason to end the copy.
  await assert.rejects(operations.run(caller().context, removal('volume v1'), work().start), { code: 'ABORTED' });
  assert.equal(filling.aborted(), false);
  const removing = work();
  const answers = Array.from({ length: 20 }, () =>
    operations.run(caller().context, removal('volume v2'), removing.start),
  );
  removing.finish('gone');
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(['gone']));
  assert.equal(filling.aborted(), true);
  assert.equal(removing.runs(), 1);
});
