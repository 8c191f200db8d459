/** Copies that take long: what is told of them meanwhile, how many run at once, and what becomes of them when they are stopped. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Command, RunCommand } from '../../src/backends/exec/run.ts';
import { createRunner } from '../../src/backends/exec/runner.ts';
import type { CopyMeter } from '../../src/core/copies.ts';
import { CallError } from '../../src/core/errors.ts';
import { createOperations } from '../../src/core/operations.ts';
import { thisOwner } from '../../src/node/owner.ts';
import { joining } from '../../src/pipeline/joining.ts';
import { held } from './held-program.ts';
import { failure, makeBench, makeFolder, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const gib = 2 ** 30;

/** A call waits for no copy. */
const impatient = { snapshots: { answer_within: 0 } };

/** A call waits for every copy. */
const patient = { snapshots: { answer_within: 3600 } };

async function site(t: TestContext, block: object = impatient, base?: string, meter?: CopyMeter) {
  const cp = held('cp');
  const bench = await makeBench(t, {
    base: base ?? join(await makeFolder(t), 'base'),
    run: cp.run,
    block: block as Record<string, unknown>,
    ...(meter && { environment: { copies: meter, connection: 'disk' } }),
  });
  return { ...bench, cp };
}

test('a long snapshot is not ready until it is, and has the same id, time and size from the first', async (t) => {
  const { base, call, volumes, snapshots, driver, cp } = await site(t);
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 * gib } }));
  await writeFile(join(base, 'v/v1/file'), 'content');
  const spec = snapshotSpec('s1', 'v1');
  const first = await snapshots.create(call, spec);
  assert.deepEqual([first.readyToUse, first.sizeBytes], [false, 2 * gib]);
  assert.equal(first.id, 'snapshot_driver=filecopy&snapshot_id=v1-s1');
  await cp.started(1);
  assert.deepEqual(await snapshots.create(call, spec), first);
  assert.deepEqual(await snapshots.get(call, first.id), first);
  assert.deepEqual(await snapshots.get(call, 'v1-s1'), first);
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, [first]);
  assert.deepEqual((await snapshots.list(call, { sourceVolumeId: 'v1' }, {})).entries, [first]);
  assert.equal(cp.waiting.length, 1);
  const [active] = driver.background?.() ?? [];
  assert.match(`${active?.title}: ${active?.waitingFor}`, /^Taking snapshot s1 of volume v1: snapshot s1/);
  const restore = volumeSpec('v2', { source: { type: 'snapshot', id: first.id } });
  await assert.rejects(volumes.create(call, restore), failure('FAILED_PRECONDITION', /still being copied/));
  const other = snapshots.create(call, snapshotSpec('s1', 'v1', { parameters: { driver: 'filecopy' } }));
  await assert.rejects(other, failure('ALREADY_EXISTS', /other parameters/));
  await assert.rejects(volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION', /snapshot s1 is still being copied/));
  cp.waiting[0]?.go();
  await driver.idle?.();
  const ready = { ...first, readyToUse: true };
  assert.deepEqual(await snapshots.create(call, spec), ready);
  assert.deepEqual(await snapshots.get(call, first.id), ready);
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, [ready]);
  assert.equal(await readFile(join(base, 's/v1-s1/file'), 'utf8'), 'content');
  assert.deepEqual(await readdir(join(base, '.switchboard/c')), []);
  await volumes.delete(call, 'v1');
});

test('a copy that fails after the answer is an error once, and the call after that begins anew', async (t) => {
  const { base, call, volumes, snapshots, driver, cp } = await site(t);
  await volumes.create(call, volumeSpec('v1'));
  const spec = snapshotSpec('s1', 'v1');
  const first = await snapshots.create(call, spec);
  await cp.started(1);
  cp.waiting[0]?.fail(new CallError('RESOURCE_EXHAUSTED', 'the disk is full'));
  await driver.idle?.();
  assert.deepEqual(await snapshots.get(call, first.id), first);
  await assert.rejects(snapshots.create(call, spec), failure('RESOURCE_EXHAUSTED', /^the disk is full$/));
  assert.deepEqual(await snapshots.create(call, spec), first);
  await cp.started(2);
  cp.waiting[1]?.go();
  await driver.idle?.();
  assert.deepEqual(await snapshots.create(call, spec), { ...first, readyToUse: true, sizeBytes: gib });
  assert.deepEqual(await readdir(join(base, 's')), ['v1-s1']);
});

test('removing a snapshot that is being copied ends the copy and leaves nothing', async (t) => {
  const { base, call, volumes, snapshots, driver, cp } = await site(t);
  await volumes.create(call, volumeSpec('v1'));
  const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  await cp.started(1);
  await snapshots.delete(call, id);
  assert.deepEqual(driver.background?.(), []);
  await assert.rejects(snapshots.get(call, id), failure('NOT_FOUND'));
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, []);
  for (const folder of ['s', '.switchboard/s', '.switchboard/c', '.switchboard/tmp']) {
    assert.deepEqual(await readdir(join(base, folder)), [], folder);
  }
  await volumes.delete(call, 'v1');
});

test('copies wait for their turn, and say so', async (t) => {
  const counts = new Map<string, number>();
  const count = (name: string, by: number) => counts.set(name, (counts.get(name) ?? 0) + by);
  const meter: CopyMeter = {
    copiesChanged: ({ connection, engine }, state, by) => count(`${connection} ${engine} ${state}`, by),
    bytesCopied: () => {},
    copyEnded: (_kind, outcome) => count(outcome, 1),
  };
  const block = { snapshots: { answer_within: 0, parallel_copies: 2 } };
  const { call, volumes, snapshots, driver, cp } = await site(t, block, undefined, meter);
  await volumes.create(call, volumeSpec('v1'));
  for (const name of ['s1', 's2', 's3', 's4']) await snapshots.create(call, snapshotSpec(name, 'v1'));
  await cp.started(2);
  assert.equal(counts.get('disk filecopy running'), 2);
  assert.equal(counts.get('disk filecopy waiting'), 2);
  const waits = (driver.background?.() ?? []).map((one) => one.waitingFor);
  assert.equal(waits.filter((text) => text === 'its turn, after the 2 copies that run now').length, 2);
  // One that waits can be called off as well.
  await snapshots.delete(call, 'v1-s3');
  assert.equal(cp.waiting.length, 2);
  cp.waiting[0]?.go();
  await cp.started(3);
  for (const one of cp.waiting) one.go();
  await driver.idle?.();
  assert.equal((await snapshots.list(call, {}, {})).entries.filter((one) => one.readyToUse).length, 3);
  assert.deepEqual([counts.get('ok'), counts.get('cancelled')], [3, 1]);
  assert.equal(counts.get('disk filecopy running'), 0);
  assert.equal(counts.get('disk filecopy waiting'), 0);
});

test('a snapshot that nobody was told of ends with the call that wants it', async (t) => {
  const { base, call, volumes, snapshots, driver, cp } = await site(t, patient);
  await volumes.create(call, volumeSpec('v1'));
  const controller = new AbortController();
  const gone = { ...call, signal: controller.signal };
  const taken = snapshots.create(gone, snapshotSpec('s1', 'v1'));
  await cp.started(1);
  controller.abort(new CallError('CANCELLED', 'the caller left'));
  await assert.rejects(taken, failure('CANCELLED'));
  assert.deepEqual(driver.background?.(), []);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

test('a process that stops leaves what it has copied, and the next goes on with it', async (t) => {
  const first = await site(t);
  const { base, call, volumes, snapshots } = first;
  await volumes.create(call, volumeSpec('v1'));
  await mkdir(join(base, 'v/v1/folder'));
  await writeFile(join(base, 'v/v1/folder/file'), 'content');
  const pending = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  await first.cp.started(1);
  const target = first.cp.waiting[0]?.command.args.at(-1) ?? '';
  await writeFile(join(target, 'marker'), 'half');
  await first.driver.close();
  assert.deepEqual(first.driver.background?.(), []);
  assert.equal((await readdir(join(base, '.switchboard/tmp'))).length, 1);

  const ran: Command[] = [];
  const real = createRunner();
  const run: RunCommand = (inner, command) => {
    ran.push(command);
    return real(inner, command);
  };
  const next = await makeBench(t, { base, run, block: patient });
  const listed = await next.snapshots.list(next.call, {}, {});
  assert.deepEqual(listed.entries, [pending]);
  // The list has found that nobody works on it.
  await next.driver.idle?.();
  const ready = await next.snapshots.get(next.call, pending.id);
  assert.deepEqual(ready, { ...pending, readyToUse: true, sizeBytes: gib });
  assert.deepEqual((await readdir(join(base, 's/v1-s1'), { recursive: true })).sort(), ['folder', 'folder/file']);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
  assert.deepEqual(
    ran.filter(({ program }) => program === 'rsync' || program === 'cp').map(({ program }) => program),
    ['rsync'],
  );
});

test('a removed volume ends the copy that fills it, when nobody waits for that any more', async (t) => {
  const { base, call, driver, cp } = await site(t);
  const { volumes } = joining(driver, createOperations());
  if (!volumes) throw new Error('no volumes');
  await volumes.create(call, volumeSpec('v1'));
  const controller = new AbortController();
  const clone = volumes.create(
    { ...call, signal: controller.signal },
    volumeSpec('v2', { source: { type: 'volume', id: 'v1' } }),
  );
  await cp.started(1);
  await assert.rejects(volumes.delete(call, 'v2'), failure('ABORTED', /CreateVolume v2/));
  controller.abort(new CallError('DEADLINE_EXCEEDED', 'the caller could not wait'));
  await assert.rejects(clone, failure('DEADLINE_EXCEEDED'));
  await assert.rejects(volumes.delete(call, 'v1'), failure('ABORTED', /copy of volume v1/));
  await volumes.delete(call, 'v2');
  assert.deepEqual(await readdir(join(base, 'v')), ['v1']);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
  await volumes.delete(call, 'v1');
});

test('what another process is copying is left to it, and told of as it was promised', async (t) => {
  const first = await site(t);
  const { base, call, volumes, snapshots } = first;
  await volumes.create(call, volumeSpec('v1'));
  const pending = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  await first.cp.started(1);
  await first.driver.close();
  const note = join(base, '.switchboard/c/v1-s1.json');
  const promise = JSON.parse(await readFile(note, 'utf8'));
  assert.equal(promise.owner, '');
  // A process that lives: the first of this machine.
  const stat = await readFile('/proc/1/stat', 'utf8');
  const [boot, namespace] = (await thisOwner()).split('.');
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  await writeFile(note, JSON.stringify({ ...promise, owner: `${boot}.${namespace}.1.${start}` }));
  const next = await site(t, impatient, base);
  assert.deepEqual(await next.snapshots.create(call, snapshotSpec('s1', 'v1')), pending);
  assert.deepEqual((await next.snapshots.list(call, {}, {})).entries, [pending]);
  assert.deepEqual(next.driver.background?.(), []);
  await assert.rejects(next.snapshots.delete(call, pending.id), failure('ABORTED', /another process/));
  await assert.rejects(next.volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION'));
  await writeFile(note, JSON.stringify({ ...promise, owner: `${boot}.${namespace}.4194305.1` }));
  await next.snapshots.delete(call, pending.id);
  await next.volumes.delete(call, 'v1');
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

test('a snapshot that failed is not begun again by a process that was not told to', async (t) => {
  const { call, volumes, snapshots, driver, cp, base } = await site(t);
  await volumes.create(call, volumeSpec('v1'));
  const pending = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  await cp.started(1);
  cp.waiting[0]?.fail(new CallError('INTERNAL', 'broken'));
  await driver.idle?.();
  await snapshots.list(call, {}, {});
  await snapshots.create(call, snapshotSpec('s2', 'v1'));
  await cp.started(2);
  assert.equal((driver.background?.() ?? []).length, 1);
  await snapshots.delete(call, pending.id);
  await snapshots.delete(call, 'v1-s2');
  assert.deepEqual(await readdir(join(base, '.switchboard/c')), []);
});
