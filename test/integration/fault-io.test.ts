/** Disks that answer with an error, at every step: the call fails, nothing is half, and the same call again completes it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  assertNothingHalf,
  connection,
  operations,
  prepare,
  removeEverything,
  reset,
  stateOf,
} from './changing-calls.ts';
import { outcomeOf } from './csi-calls.ts';
import { assertAtRest, assertLeavesNothing } from './server-under-test.ts';
import { cannotTrace, oneFileThread, watchFiles } from './watch-files.ts';

/** Errors of disks, and what the caller is told. */
const errors = { EIO: 'UNAVAILABLE', ENOSPC: 'RESOURCE_EXHAUSTED' } as const;

for (const [title, operation] of Object.entries(operations)) {
  test(`every step of ${title} fails once`, { skip: cannotTrace }, async (t) => {
    const site = await prepare(t);
    const file = site.path('trace');
    const server = await site.start({ env: oneFileThread });
    await reset(site);
    const before = await stateOf(site, server);
    const watch = await watchFiles(server, { file });
    await operation(server);
    const steps = await watch.end();
    const after = await stateOf(site, server);

    let refusals = 0;
    for (const [error, expected] of Object.entries(errors)) {
      for (const step of steps) {
        await reset(site);
        const faulty = await watchFiles(server, { file, fault: { step, does: `error=${error}` } });
        const { code, message } = await outcomeOf(operation(server));
        const done = await faulty.end();
        const what = `${error} at ${step.line}: ${code}: ${message}`;
        assert.ok(
          done.some(({ line }) => line.includes('(INJECTED)')),
          what,
        );
        await assertNothingHalf(site, before.tree, after.tree);
        if (code === 'OK') {
          assert.deepEqual(await stateOf(site, server), after, what);
        } else {
          refusals++;
          assert.equal(code, expected, what);
          await operation(server);
        }
        assert.deepEqual(await stateOf(site, server), after, what);
        await removeEverything(server, connection);
        await assertAtRest(site, server);
      }
    }
    t.diagnostic(`${steps.length} steps, ${refusals} refusals`);
    assert.ok(refusals > 0);
    await assertLeavesNothing(site, server);
  });
}
