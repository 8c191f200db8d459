import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Driver } from '../../src/core/driver.ts';
import type { Operation } from './local-hostpath-operations.ts';
import { operations, quota, sizes } from './local-hostpath-operations.ts';
import type { Bench } from './local-hostpath-support.ts';
import { makeBench, makeFolder, mountImage, sh, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const child = join(import.meta.dirname, 'local-hostpath-crash-child.ts');

interface ChildTask {
  readonly base: string;
  readonly operation: Operation;
  readonly killAt: number;
  readonly paths?: Record<string, string>;
}

function start(task: ChildTask) {
  return spawn(process.execPath, ['--no-warnings', child, JSON.stringify(task)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** True when it was killed at that step; false when there was no such step. */
async function killedAt(task: ChildTask): Promise<boolean> {
  const [code, signal] = await once(start(task), 'exit');
  if (signal !== 'SIGKILL') assert.equal(code, 0, `${task.operation} failed without being killed`);
  return signal === 'SIGKILL';
}

const bench = (t: TestContext, base: string): Promise<Bench> =>
  makeBench(t, { base, block: { dirPermissionsMode: '0750', quota }, environment: { nodeTopology: {} } });

/** A base path with the volume and the snapshot that the operations work on. */
async function prepare(t: TestContext, base: string): Promise<void> {
  const { call, volumes, snapshots, driver } = await bench(t, base);
  await volumes.create(call, volumeSpec('source', { capacity: sizes.small }));
  await mkdir(join(base, 'v/source/folder'));
  await writeFile(join(base, 'v/source/folder/file'), 'content');
  await writeFile(join(base, 'v/source/file'), 'content');
  await snapshots.create(call, snapshotSpec('first', 'source'));
  await driver.close();
}

const whole = ['file', 'folder', 'folder/file'];

async function read(path: string): Promise<readonly string[]> {
  return (await readdir(path, { recursive: true })).sort();
}

/** What must be true of everything that is shown, at any moment. */
async function assertNothingHalf({ base, call, volumes, snapshots }: Bench, operation: Operation): Promise<void> {
  for (const { volume, condition } of (await volumes.list?.(call, {}))?.entries ?? []) {
    if (condition?.abnormal) continue;
    const empty = volume.id === 'made' && operation === 'create';
    assert.deepEqual(await read(join(base, 'v', volume.id)), empty ? [] : whole, volume.id);
  }
  for (const { id, readyToUse } of (await snapshots.list(call, {}, {})).entries) {
    // One that was promised is there, and says that it is not whole.
    if (!readyToUse) continue;
    const folder = new URLSearchParams(id).get('snapshot_id') ?? '';
    assert.deepEqual(await read(join(base, 's', folder)), whole, folder);
  }
}

async function assertDone({ base, call, volumes, snapshots }: Bench, operation: Operation): Promise<void> {
  const made = operation === 'create' || operation === 'clone' || operation === 'restore';
  const expected = [...(made ? ['made'] : []), ...(operation === 'delete' ? [] : ['source'])];
  const listed = (await volumes.list?.(call, {}))?.entries.map(({ volume, condition }) => [
    volume.id,
    condition?.abnormal,
  ]);
  assert.deepEqual(
    listed,
    expected.map((id) => [id, false]),
  );
  const folders = [
    ...(operation === 'deleteSnapshot' ? [] : ['source-first']),
    ...(operation === 'snapshot' || operation === 'longSnapshot' ? ['source-second'] : []),
  ];
  assert.deepEqual((await readdir(join(base, 's'))).sort(), folders);
  assert.deepEqual((await snapshots.list(call, {}, {})).entries.length, folders.length);
  const size = operation === 'expand' ? sizes.large : sizes.small;
  for (const { volume } of (await volumes.list?.(call, {}))?.entries ?? []) {
    assert.equal(volume.capacityBytes, size.requiredBytes);
  }
}

/** Removes everything there can be and sees that nothing is left. */
async function assertNothingLeft({ base, call, volumes, snapshots }: Bench): Promise<void> {
  await volumes.delete(call, 'made');
  for (const id of ['source-first', 'source-second']) await snapshots.delete(call, id);
  await volumes.delete(call, 'source');
  for (const folder of ['v', 's', '.switchboard/v', '.switchboard/s', '.switchboard/p', '.switchboard/tmp']) {
    assert.deepEqual(await readdir(join(base, folder)), [], folder);
  }
}

const repeat = async (driver: Driver, { call }: Bench, operation: Operation) => operations[operation](driver, call);

async function foldersLeft(base: string): Promise<readonly string[]> {
  const folders = ['tmp', 'c'].map((name) => readdir(join(base, '.switchboard', name)).catch(() => []));
  return (await Promise.all(folders)).flat();
}

for (const operation of Object.keys(operations) as Operation[]) {
  test(`${operation} is killed at every step: the same call completes it, or delete removes it`, async (t) => {
    const root =
      quota === 'none' ? await makeFolder(t) : await mountImage(t, 400, ['mkfs.xfs', '-q', '-f'], 'loop,prjquota');
    const original = join(root, 'original');
    await prepare(t, original);
    let killAt = 1;
    for (; ; killAt++) {
      const [base, other] = [join(root, `repeated-${killAt}`), join(root, `removed-${killAt}`)];
      await prepare(t, base);
      const killed = await killedAt({ base, operation, killAt });
      await sh('cp', '-a', base, other);
      const repeated = await bench(t, base);
      await assertNothingHalf(repeated, operation);
      await repeat(repeated.driver, repeated, operation);
      await assertNothingHalf(repeated, operation);
      await assertDone(repeated, operation);
      assert.deepEqual(await foldersLeft(base), [], `left at step ${killAt}`);
      await assertNothingLeft(repeated);
      if (quota === 'none') await assertNothingLeft(await bench(t, other));
      await rm(base, { recursive: true });
      await rm(other, { recursive: true });
      if (!killed) break;
    }
    assert.ok(killAt > 5, `${operation} has ${killAt} steps`);
    t.diagnostic(`${killAt} steps`);
  });
}

test('a copy that outlives its dead owner reaches nothing', { skip: quota !== 'none' }, async (t) => {
  const root = await makeFolder(t);
  const base = join(root, 'base');
  await prepare(t, base);
  const cp = join(root, 'cp');
  await writeFile(cp, slowCopy.replaceAll('ROOT', root));
  await chmod(cp, 0o755);
  const owner = start({ base, operation: 'clone', killAt: 0, paths: { cp } });
  const exited = once(owner, 'exit');
  await appearance(join(root, 'started'));
  owner.kill('SIGKILL');
  await exited;
  const { call, volumes, driver } = await bench(t, base);
  await operations.clone(driver, call);
  assert.deepEqual(await read(join(base, 'v/made')), whole);
  await writeFile(join(root, 'go'), '');
  await appearance(join(root, 'ended'));
  assert.notEqual((await readFile(join(root, 'ended'), 'utf8')).trim(), '0');
  assert.deepEqual(await read(join(base, 'v/made')), whole);
  await volumes.delete(call, 'made');
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

/** A copy that begins, waits for a file and then goes on. */
const slowCopy = `#!/bin/sh
for target in "$@"; do :; done
echo half > "$target/half"
echo > ROOT/started
until [ -e ROOT/go ]; do sleep 0.05; done
cp "$@"
echo $? > ROOT/ended.new
mv ROOT/ended.new ROOT/ended
`;

/** Waits until a file is there; the test runner's time limit ends it. */
async function appearance(path: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = async () => {
    if ((await readFile(path, 'utf8').catch(() => '')) !== '') resolve();
    else setTimeout(look, 20);
  };
  await look();
  await promise;
}
