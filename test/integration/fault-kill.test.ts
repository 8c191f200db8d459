/** kill -9 at every step of what changes storage: the same call completes it, or delete removes it, and nothing leaks. */
import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import {
  assertNothingHalf,
  connection,
  copy,
  copyFolder,
  type Operation,
  operations,
  prepare,
  removeEverything,
  reset,
  stateOf,
} from './changing-calls.ts';
import { createVolume, deleteVolume, outcomeOf, writer } from './csi-calls.ts';
import { assertAtRest, assertLeavesNothing, makeSite, type Site } from './server-under-test.ts';
import { cannotTrace, distinctSteps, oneFileThread, watchFiles } from './watch-files.ts';

const { Controller, Node } = services;

/** Programs that copying runs: the server can be killed while they do. */
const copiers: Readonly<Record<string, readonly string[]>> = {
  'CreateVolume from a snapshot': ['cp', 'sync'],
  'CreateVolume from a volume': ['cp', 'sync'],
  CreateSnapshot: ['cp', 'sync'],
};

/** A copy that has begun goes on after the server is killed. */
const killsItsParent = (flag: string, program: string) =>
  `for target in "$@"; do :; done
if rm ${flag} 2>/dev/null; then echo half > "$target/half"; kill -KILL $PPID; rm "$target/half"; fi
exec /bin/${program} "$@"`;

for (const [title, operation] of Object.entries(operations)) {
  test(`${title} is killed at every step`, { skip: cannotTrace }, async (t) => {
    const site = await prepare(t);
    for (const program of ['cp', 'sync']) {
      await site.standIn(program, killsItsParent(site.path(`kill-in-${program}`), program));
    }
    const trace = site.path('trace');
    let server = await site.start({ env: oneFileThread });

    await reset(site);
    const before = await stateOf(site, server);
    const watch = await watchFiles(server, { file: trace });
    const answer = await operation(server);
    const steps = await watch.end();
    const after = await stateOf(site, server);
    assert.notDeepEqual(after, before);

    const faults = [
      ...distinctSteps(steps).map((step) => ({
        title: step.line.replaceAll(site.root, ''),
        arm: () => watchFiles(server, { file: trace, fault: { step, does: 'signal=KILL' } }),
      })),
      ...(copiers[title] ?? []).map((program) => ({
        title: program,
        arm: () => writeFile(site.path(`kill-in-${program}`), ''),
      })),
    ];
    for (const fault of faults) {
      await reset(site);
      await fault.arm();
      const { code, message } = await outcomeOf(operation(server));
      assert.equal(code, 'UNAVAILABLE', `${fault.title}: ${message}`);
      assert.equal((await server.ended).signal, 'SIGKILL');
      await copyFolder(site.data(connection), site.data(copy));

      server = await site.start({ env: oneFileThread });
      await t.test(fault.title, async () => {
        await assertNothingHalf(site, before.tree, after.tree);
        const again = await operation(server);
        if (title !== 'CreateSnapshot') assert.deepEqual(again, answer);
        assert.deepEqual(await stateOf(site, server), after);
        for (const name of [connection, copy]) await removeEverything(server, name);
        await assertAtRest(site, server);
      });
    }
    t.diagnostic(`${faults.length} of ${steps.length} steps`);
    assert.ok(faults.length >= 3);
    await assertLeavesNothing(site, server);
  });
}

/** Kills the server before it runs, or when it has ended. */
const killsAround = (site: Site, program: string) =>
  `if rm ${site.path('kill-before')} 2>/dev/null; then kill -KILL $PPID; exit 1; fi
/bin/${program} "$@"
code=$?
if rm ${site.path('kill-after')} 2>/dev/null; then kill -KILL $PPID; fi
exit $code`;

test('a node is killed while it mounts and unmounts', {
  skip: process.getuid?.() !== 0 && 'NOT TESTED: needs root',
}, async (t) => {
  const site = await makeSite(t);
  for (const program of ['mount', 'umount']) await site.standIn(program, killsAround(site, program));
  let server = await site.start();
  const id = await createVolume(server, 'one');
  const { volume: made } = await server.call(Controller.ControllerGetVolume, { volumeId: id });
  const [targetPath, stagingTargetPath] = [site.path('target'), site.path('staging')];
  const on = { volumeId: id, volumeCapability: writer, volumeContext: made?.volumeContext ?? {} };
  const stage: Operation = (at) => at.call(Node.NodeStageVolume, { ...on, stagingTargetPath });
  const unstage: Operation = (at) => at.call(Node.NodeUnstageVolume, { volumeId: id, stagingTargetPath });
  const steps: readonly Operation[] = [
    stage,
    (at) => at.call(Node.NodePublishVolume, { ...on, stagingTargetPath, targetPath }),
    (at) => at.call(Node.NodeUnpublishVolume, { volumeId: id, targetPath }),
    unstage,
  ];
  for (const when of ['kill-before', 'kill-after']) {
    for (const [index, step] of steps.entries()) {
      await writeFile(site.path(when), '');
      assert.equal((await outcomeOf(step(server))).code, 'UNAVAILABLE', `${when} ${index}`);
      await server.ended;
      server = await site.start();
      await step(server);
      const expected = [[stagingTargetPath], [targetPath, stagingTargetPath], [stagingTargetPath], []];
      assert.deepEqual(await mountsBelow(site.root), expected[index], `${when} ${index}`);
    }
    // What was killed half-way is taken down by the opposite call, too.
    await writeFile(site.path(when), '');
    await outcomeOf(stage(server));
    await server.ended;
    server = await site.start();
    await unstage(server);
    assert.deepEqual(await mountsBelow(site.root), []);
  }
  assert.deepEqual(await readdir(site.path('state/staged')), [], 'nothing is remembered');
  assert.deepEqual(
    (await readdir(site.root)).filter((name) => ['target', 'staging'].includes(name)),
    [],
  );
  await deleteVolume(server, id);
  await assertLeavesNothing(site, server);
});
