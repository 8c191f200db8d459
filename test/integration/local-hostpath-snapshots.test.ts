import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page, Snapshot, VolumeStatus } from '../../src/core/volume.ts';
import { contents, failure, makeBench, makeFolder, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const gib = 2 ** 30;

test('volumes and snapshots that democratic-csi made work fully', async (t) => {
  const base = await makeFolder(t);
  await mkdir(join(base, 'v/pvc-1'), { recursive: true });
  await mkdir(join(base, 's/pvc-1-snap-1'), { recursive: true });
  await writeFile(join(base, 'v/pvc-1/file'), 'v');
  await writeFile(join(base, 's/pvc-1-snap-1/file'), 's');
  const { call, volumes, snapshots, driver } = await makeBench(t, { base });
  const id = 'snapshot_driver=filecopy&snapshot_id=pvc-1-snap-1';
  const status = await volumes.get?.(call, 'pvc-1');
  assert.equal(status?.volume.capacityBytes, 0);
  assert.equal(status?.condition?.abnormal, false);
  const snapshot = await snapshots.get(call, id);
  assert.equal(snapshot.sourceVolumeId, 'pvc-1');
  assert.equal(snapshot.id, id);
  assert.ok(Math.abs(snapshot.createdAt.getTime() - Date.now()) < 60_000);
  assert.deepEqual(await snapshots.create(call, snapshotSpec('snap-1', 'pvc-1')), snapshot);
  assert.equal((await snapshots.list(call, { sourceVolumeId: 'pvc-1' }, {})).entries.length, 1);
  assert.equal((await snapshots.list(call, { sourceVolumeId: 'pvc' }, {})).entries.length, 0);
  await volumes.create(call, volumeSpec('restored', { source: { type: 'snapshot', id } }));
  assert.equal(await readFile(join(base, 'v/restored/file'), 'utf8'), 's');
  await assert.rejects(
    volumes.create(call, volumeSpec('pvc-1', { source: { type: 'snapshot', id } })),
    failure('ALREADY_EXISTS', /whole copy/),
  );
  assert.equal((await volumes.create(call, volumeSpec('pvc-1'))).capacityBytes, gib);
  assert.equal(await readFile(join(base, 'v/pvc-1/file'), 'utf8'), 'v');
  const expanded = await driver.expansion?.expand(call, { volumeId: 'pvc-1', capacity: { requiredBytes: 3 * gib } });
  assert.deepEqual(expanded, { capacityBytes: 3 * gib, nodeExpansionRequired: false });
  await volumes.delete(call, 'pvc-1');
  assert.equal((await snapshots.get(call, 'pvc-1-snap-1')).id, id);
  await snapshots.delete(call, id);
  await volumes.delete(call, 'restored');
  assert.deepEqual(await contents(base), []);
});

test('a snapshot keeps its first answer and survives its volume', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 * gib } }));
  await writeFile(join(base, 'v/v1/file'), 'before');
  const first = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.equal(first.sizeBytes, 2 * gib);
  assert.equal(first.readyToUse, true);
  await writeFile(join(base, 'v/v1/file'), 'after');
  assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
  await volumes.delete(call, 'v1');
  assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
  assert.deepEqual(await snapshots.get(call, first.id), first);
  const restored = await volumes.create(call, volumeSpec('v2', { source: { type: 'snapshot', id: first.id } }));
  assert.equal(restored.capacityBytes, 2 * gib);
  assert.deepEqual(restored.source, { type: 'snapshot', id: first.id });
  assert.equal(await readFile(join(base, 'v/v2/file'), 'utf8'), 'before');
  const bare = volumeSpec('v2', { source: { type: 'snapshot', id: 'v1-s1' } });
  assert.deepEqual((await volumes.create(call, bare)).source, { type: 'snapshot', id: 'v1-s1' });
  const small = volumeSpec('v3', { source: { type: 'snapshot', id: first.id }, capacity: { requiredBytes: gib } });
  await assert.rejects(volumes.create(call, small), failure('OUT_OF_RANGE'));
});

test('a snapshot name belongs to one volume', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  for (const name of ['a', 'a-b', 'x']) await volumes.create(call, volumeSpec(name));
  await snapshots.create(call, snapshotSpec('s', 'a'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s', 'x')), failure('ALREADY_EXISTS', /of volume a$/));
  await assert.rejects(
    snapshots.create(call, snapshotSpec('s', 'a', { parameters: { p: '1' } })),
    failure('ALREADY_EXISTS'),
  );
  // Both would be the folder a-b-c.
  await snapshots.create(call, snapshotSpec('c', 'a-b'));
  await assert.rejects(snapshots.create(call, snapshotSpec('b-c', 'a')), failure('ALREADY_EXISTS'));
  const long = 'l'.repeat(128);
  const { id } = await snapshots.create(call, snapshotSpec(long, 'a'));
  assert.ok(id.length <= 128);
  await assert.rejects(snapshots.create(call, snapshotSpec(long, 'x')), failure('ALREADY_EXISTS', /of volume a$/));
  assert.equal((await snapshots.list(call, { sourceVolumeId: 'a' }, {})).entries.length, 2);
  // Made by democratic-csi, and read by the longest volume id that fits.
  await mkdir(join(base, 's/a-b-peer'));
  await assert.rejects(snapshots.create(call, snapshotSpec('peer', 'x')), failure('ALREADY_EXISTS', /of volume a-b$/));
});

test('snapshots that cannot be taken', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s/1', 'v1')), failure('INVALID_ARGUMENT'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s1', 'v9')), failure('NOT_FOUND'));
  const by = (driver: string) => snapshots.create(call, snapshotSpec('s1', 'v1', { parameters: { driver } }));
  await assert.rejects(by('tar'), failure('INVALID_ARGUMENT', /filecopy, restic, kopia/));
  assert.deepEqual(await readdir(join(base, 's')), []);
});

test('expansion only ever grows', async (t) => {
  const { call, volumes, driver } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 * gib } }));
  const expand = async (requiredBytes?: number, limitBytes?: number) =>
    (await driver.expansion?.expand(call, { volumeId: 'v1', capacity: { requiredBytes, limitBytes } }))?.capacityBytes;
  assert.equal(await expand(3 * gib), 3 * gib);
  assert.equal(await expand(gib), 3 * gib);
  assert.equal(await expand(undefined, 4 * gib), 4 * gib);
  assert.equal((await volumes.get?.(call, 'v1'))?.volume.capacityBytes, 4 * gib);
  await assert.rejects(expand(undefined, 3 * gib), failure('OUT_OF_RANGE'));
  await assert.rejects(expand(6 * gib, 5 * gib), failure('OUT_OF_RANGE'));
  await assert.rejects(
    driver.expansion?.expand(call, { volumeId: 'v9', capacity: {} }) as Promise<unknown>,
    failure('NOT_FOUND'),
  );
});

async function all<T>(list: (token: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const found: T[] = [];
  let token: string | undefined;
  do {
    const page = await list(token);
    found.push(...page.entries);
    token = page.nextToken;
  } while (token !== undefined);
  return found;
}

test('listing has all volumes and snapshots, page by page', async (t) => {
  const { call, base, volumes, snapshots } = await makeBench(t);
  const list = (limit?: number) => all<VolumeStatus>((token) => volumes.list?.(call, { limit, token }) as never);
  const listSnapshots = (limit?: number) => all<Snapshot>((token) => snapshots.list(call, {}, { limit, token }));
  assert.deepEqual(await list(), []);
  assert.deepEqual(await listSnapshots(), []);
  for (const name of ['c', 'a', 'b', 'd']) await volumes.create(call, volumeSpec(name));
  for (const name of ['a', 'b', 'c']) await snapshots.create(call, snapshotSpec(`s-${name}`, name));
  await mkdir(join(base, 'v/lost+found'));
  const ids = (await list(3)).map((status) => status.volume.id);
  assert.deepEqual(ids, ['a', 'b', 'c', 'd']);
  assert.deepEqual(
    (await listSnapshots(2)).map((snapshot) => snapshot.sourceVolumeId),
    ['a', 'b', 'c'],
  );
  await assert.rejects(volumes.list?.(call, { token: 'invalid-token' }) as Promise<unknown>, failure('ABORTED'));
  const one = await snapshots.list(call, { snapshotId: 'b-s-b' }, {});
  assert.deepEqual(
    one.entries.map((snapshot) => snapshot.sourceVolumeId),
    ['b'],
  );
  assert.deepEqual((await snapshots.list(call, { snapshotId: 'no' }, {})).entries, []);
});
