/** Many at once: equal calls share one result, different ones exclude each other. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import {
  capability,
  createSnapshot,
  createVolume,
  deleteSnapshot,
  deleteVolume,
  mib,
  outcomeOf,
  publish,
  tally,
  unpublish,
  volumeRequest,
} from './csi-calls.ts';
import { assertAtRest, assertLeavesNothing, makeSite } from './server-under-test.ts';

const { Controller } = services;
const many = 50;
const times = <T>(work: (index: number) => T): T[] => Array.from({ length: many }, (_, index) => work(index));
const skip = process.getuid?.() !== 0 && 'needs root';

test('equal calls at once make one volume and one snapshot, and all get the same answer', { skip }, async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(times(() => server.call(Controller.CreateVolume, volumeRequest('one'))));
    assert.equal(answers[0]?.volume?.volumeId, 'v:local/one');
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    assert.deepEqual(await readdir(site.data('local/v')), ['one']);

    const request = { name: 'snap', sourceVolumeId: 'v:local/one' };
    const snapshots = await Promise.all(times(() => server.call(Controller.CreateSnapshot, request)));
    for (const answer of snapshots) assert.deepEqual(answer, snapshots[0]);
    assert.deepEqual(await readdir(site.data('local/s')), ['one-snap']);
    await assertAtRest(site, server);

    assert.deepEqual(await tally(times(() => deleteSnapshot(server, snapshots[0]?.snapshot?.snapshotId ?? ''))), {
      OK: many,
    });
    assert.deepEqual(await tally(times(() => deleteVolume(server, 'v:local/one'))), { OK: many });
  }
  await assertLeavesNothing(site, server);
});

test('of calls that contradict each other one wins, and the others are told why they did not', { skip }, async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  const sizeOf = (index: number) => (index + 1) * mib;
  const outcomes = await Promise.all(
    times((index) => outcomeOf(createVolume(server, 'one', { bytes: sizeOf(index) }))),
  );
  const winners = times((index) => index).filter((index) => outcomes[index]?.code === 'OK');
  assert.equal(winners.length, 1);
  for (const { code, message } of outcomes) {
    if (code === 'ABORTED')
      assert.match(message, /volume .*one is held by CreateVolume one \(\d+ s.*\); try again later/);
    else if (code === 'ALREADY_EXISTS') assert.match(message, /volume one exists already, .*MiB/);
    else assert.equal(code, 'OK', message);
  }
  const { volume } = await server.call(Controller.ControllerGetVolume, { volumeId: 'v:local/one' });
  assert.equal(volume?.capacityBytes, sizeOf(winners[0] ?? -1));
  assert.deepEqual(await readdir(site.data('local/v')), ['one']);

  for (const index of times((one) => one)) {
    const { code } = await outcomeOf(createVolume(server, 'one', { bytes: sizeOf(index) }));
    assert.equal(code, index === winners[0] ? 'OK' : 'ALREADY_EXISTS');
  }
  await deleteVolume(server, 'v:local/one');
  await assertLeavesNothing(site, server);
});

test('a name that is made and removed at once is there or not, never half', { skip }, async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  for (let round = 0; round < 5; round++) {
    const calls = times((index) =>
      index % 2 === 0 ? createVolume(server, 'one') : deleteVolume(server, 'v:local/one'),
    );
    for (const code of Object.keys(await tally(calls))) assert.match(code, /^(OK|ABORTED)$/);
    const listed = await server.call(Controller.ListVolumes, {});
    const found = listed.entries.map(({ volume }) => volume?.volumeId);
    const data = await readdir(site.data('local/v'));
    const records = await readdir(site.data('local/.switchboard/v'));
    assert.deepEqual([data.length, records.length, found.length], Array(3).fill(data.length), `round ${round}`);
    await assertAtRest(site, server);
  }
  await createVolume(server, 'one');
  await deleteVolume(server, 'v:local/one');
  await assertLeavesNothing(site, server);
});

test('a source cannot be removed under a copy of it', { skip }, async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  for (let round = 0; round < 3; round++) {
    const source = await createVolume(server, 'source');
    const copies = times((index) => createVolume(server, `copy${index}`, { fromVolume: source }));
    const [removed, ...made] = await Promise.all([outcomeOf(deleteVolume(server, source)), ...copies.map(outcomeOf)]);
    assert.match(removed.code, /^(OK|ABORTED)$/);
    for (const { code, message } of made) assert.match(code, /^(OK|ABORTED|NOT_FOUND)$/, message);
    const whole = made.flatMap(({ code }, index) => (code === 'OK' ? [`copy${index}`] : []));
    assert.deepEqual((await readdir(site.data('local/v'))).filter((name) => name !== 'source').sort(), whole.sort());
    for (const name of [...whole, 'source']) await deleteVolume(server, `v:local/${name}`);
  }
  await assertLeavesNothing(site, server);
});

test('a volume of a single writer is published once, however many ask', { skip }, async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  const volume = await createVolume(server, 'one');
  const target = (index: number) => site.path(`target-${index}`);
  const single = capability('SINGLE_NODE_SINGLE_WRITER');
  const outcomes = await Promise.all(times((index) => outcomeOf(publish(server, volume, target(index), single))));
  const winners = outcomes.flatMap(({ code }, index) => (code === 'OK' ? [index] : []));
  assert.equal(winners.length, 1);
  for (const { code, message } of outcomes) {
    if (code !== 'OK') assert.match(`${code}: ${message}`, /^FAILED_PRECONDITION: .*published at .* single writer/);
  }
  assert.deepEqual(await mountsBelow(site.root), [target(winners[0] ?? -1)]);
  assert.deepEqual(
    (await readdir(site.root)).filter((name) => name.startsWith('target-')),
    [`target-${winners[0]}`],
  );

  assert.deepEqual(await tally(times((index) => unpublish(server, volume, target(index)))), { OK: many });
  assert.deepEqual(await tally(times((index) => publish(server, volume, target(index)))), { OK: many });
  assert.equal((await mountsBelow(site.root)).length, many);
  assert.equal((await outcomeOf(deleteVolume(server, volume))).code, 'FAILED_PRECONDITION');
  assert.deepEqual(await tally(times((index) => unpublish(server, volume, target(index)))), { OK: many });
  const same = times(() => publish(server, volume, target(0), single));
  assert.deepEqual(await tally(same), { OK: many });
  assert.deepEqual(await mountsBelow(site.root), [target(0)]);
  await unpublish(server, volume, target(0));
  await createSnapshot(server, 'snap', volume).then((id) => deleteSnapshot(server, id));
  await deleteVolume(server, volume);
  await assertLeavesNothing(site, server);
});
