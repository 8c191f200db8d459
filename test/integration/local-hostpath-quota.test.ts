import assert from 'node:assert/strict';
import { readdir, readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { CallError } from '../../src/core/errors.ts';
import {
  failure,
  makeBench,
  mountImage,
  sh,
  noProjectQuotas as skip,
  snapshotSpec,
  volumeSpec,
} from './local-hostpath-support.ts';

const mib = 2 ** 20;

const block = { quota: 'project' };

const fileSystems = {
  xfs: (t: TestContext) => mountImage(t, 400, ['mkfs.xfs', '-q', '-f', '-m', 'reflink=1'], 'loop,prjquota'),
  ext4: (t: TestContext) => mountImage(t, 200, ['mkfs.ext4', '-q', '-F', '-O', 'project,quota'], 'loop,prjquota'),
} as const;

/** Without the capability to pass quotas, which ext4 respects and containers do not have. */
const unprivileged = ['setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource'] as const;

const write = (path: string, size: number) =>
  sh(...unprivileged, 'dd', 'if=/dev/zero', `of=${path}`, 'bs=1M', `count=${size}`, 'conv=fsync', 'status=none');

async function shownSize(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return (blocks * bsize) / mib;
}

/** Limits that are set, by project number; those of zero are none. */
async function limits(point: string): Promise<string[]> {
  const report = await sh('repquota', '-P', '-n', '-v', point);
  return report.split('\n').flatMap((line) => /^#(\d+)\s+\S+\s+\d+\s+\d+\s+([1-9]\d*)/.exec(line)?.[1] ?? []);
}

for (const [name, mounted] of Object.entries(fileSystems)) {
  test(`project quotas on ${name} keep volumes to their size`, { skip }, async (t) => {
    const point = await mounted(t);
    const { base, call, volumes, snapshots, driver } = await makeBench(t, { base: join(point, 'base'), block });
    const capacity = { requiredBytes: 20 * mib };
    await volumes.create(call, volumeSpec('v1', { capacity }));
    await volumes.create(call, volumeSpec('v2', { capacity }));
    const path = join(base, 'v/v1');
    assert.equal(await shownSize(path), 20);
    await write(join(path, 'fits'), 15);
    await assert.rejects(write(join(path, 'too much'), 15), /No space left|Disk quota exceeded/);
    await sh('rm', join(path, 'too much'));
    await sh('mkdir', join(path, 'sub'));
    await assert.rejects(write(join(path, 'sub/too much'), 15), /No space left|Disk quota exceeded/);
    await write(join(base, 'v/v2/fits'), 15);
    await sh('sh', '-c', 'rm "$0"/sub/too*', path);

    await driver.expansion?.expand(call, { volumeId: 'v1', capacity: { requiredBytes: 40 * mib } });
    assert.equal(await shownSize(path), 40);
    await write(join(path, 'more'), 20);
    await assert.rejects(write(join(path, 'sub/too much'), 15), /No space left|Disk quota exceeded/);
    await sh('rm', join(path, 'sub/too much'));

    const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
    const clone = await volumes.create(
      call,
      volumeSpec('v3', { source: { type: 'snapshot', id }, capacity: { requiredBytes: 50 * mib } }),
    );
    assert.equal(await shownSize(join(base, 'v', clone.id)), 50);
    await assert.rejects(write(join(base, 'v/v3/too much'), 25), /No space left|Disk quota exceeded/);
    assert.equal((await limits(point)).length, 3);

    for (const volume of ['v1', 'v2', 'v3']) await volumes.delete(call, volume);
    await snapshots.delete(call, id);
    assert.deepEqual(await limits(point), []);
    for (const folder of ['v', '.switchboard/p', '.switchboard/tmp'])
      assert.deepEqual(await readdir(join(base, folder)), []);
  });

  test(`a source that outgrew the size of its clone on ${name} is RESOURCE_EXHAUSTED and leaves no quota`, {
    skip,
  }, async (t) => {
    const point = await mounted(t);
    const base = join(point, 'base');
    const free = await makeBench(t, { base });
    const { call } = free;
    await free.volumes.create(call, volumeSpec('big', { capacity: { requiredBytes: 10 * mib } }));
    await write(join(base, 'v/big/data'), 30);
    const { volumes } = await makeBench(t, { base, block });
    const clone = volumeSpec('clone', { source: { type: 'volume', id: 'big' }, capacity: { requiredBytes: 10 * mib } });
    await assert.rejects(volumes.create(call, clone), failure('RESOURCE_EXHAUSTED'));
    assert.deepEqual(await limits(point), []);
    for (const folder of ['.switchboard/p', '.switchboard/tmp'])
      assert.deepEqual(await readdir(join(base, folder)), []);
  });
}

test('volumes from before the quota was asked for, and after it was given up, go on working', { skip }, async (t) => {
  const point = await fileSystems.ext4(t);
  const base = join(point, 'base');
  const free = await makeBench(t, { base });
  const { call } = free;
  await free.volumes.create(call, volumeSpec('old', { capacity: { requiredBytes: 10 * mib } }));
  const limited = await makeBench(t, { base, block });
  await limited.volumes.create(call, volumeSpec('new', { capacity: { requiredBytes: 10 * mib } }));
  const grow = { capacity: { requiredBytes: 20 * mib } };
  await limited.driver.expansion?.expand(call, { volumeId: 'old', ...grow });
  await free.driver.expansion?.expand(call, { volumeId: 'new', ...grow });
  assert.equal(await shownSize(join(base, 'v/new')), 20);
  await free.volumes.delete(call, 'new');
  assert.deepEqual(await limits(point), []);
  await limited.volumes.delete(call, 'old');
});

test('a quota that cannot be had is refused with what is missing', { skip }, async (t) => {
  const plainXfs = await mountImage(t, 300, ['mkfs.xfs', '-q', '-f']);
  const btrfs = await mountImage(t, 120, ['mkfs.btrfs', '-q', '-f']);
  const ext4 = await fileSystems.ext4(t);
  const refused = async (point: string, message: RegExp, more: object = {}) => {
    const { base, call, volumes } = await makeBench(t, { base: join(point, 'base'), block, ...more });
    await assert.rejects(
      volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 10 * mib } })),
      failure('FAILED_PRECONDITION', message),
    );
    for (const folder of ['v', '.switchboard/v', '.switchboard/p', '.switchboard/tmp']) {
      assert.deepEqual(await readdir(join(base, folder)), [], folder);
    }
  };
  await refused(plainXfs, /option prjquota/);
  await refused(btrfs, /needs xfs or ext4, but .* is on btrfs/);
  const real = createRunner();
  await refused(ext4, /`setquota` was not found/, {
    run: (call: never, command: { program: string }) => {
      if (command.program !== 'setquota') return real(call, command as never);
      throw new CallError('FAILED_PRECONDITION', 'host program `setquota` was not found');
    },
  });
  await refused(ext4, /has no effect/, {
    run: async (call: never, command: { program: string }) =>
      command.program === 'setquota' ? { code: 0, stdout: '', stderr: '' } : real(call, command as never),
  });
});

test('the number of a volume is recorded and claimed', { skip }, async (t) => {
  const point = await fileSystems.ext4(t);
  const { base, call, volumes } = await makeBench(t, { base: join(point, 'base'), block });
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 10 * mib } }));
  const { project } = JSON.parse(await readFile(join(base, '.switchboard/v/v1.json'), 'utf8'));
  assert.equal(await readFile(join(base, '.switchboard/p', String(project)), 'utf8'), 'v1');
  assert.match(await sh('lsattr', '-dp', join(base, 'v/v1')), new RegExp(`^\\s*${project} .*P`));
});
