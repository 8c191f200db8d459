/** Block volumes that are published for reading: nobody writes to them, root included, while others write to the same device. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { errnoOf } from '../../src/core/errors.ts';
import { cleanLeftover } from '../../src/node/clean-leftover.ts';
import { readMountTable } from '../../src/node/mount-table.ts';
import { makePlane } from '../../src/node/plane.ts';
import { findLeftovers } from '../../src/node/records/leftovers.ts';
import { assertGone, attachers, type LoopBench, loopBench } from './node-records-support.ts';
import { type BenchOptions, blockCapability, call, enterMountNamespace, host, loopDevice } from './node-support.ts';

enterMountNamespace(import.meta.url);

const MiB = 2 ** 20;
const block = { capability: blockCapability };
const forReading = { ...block, readonly: true };

interface BlockBench extends LoopBench {
  /** The loop devices above the volume's own. */
  above(): readonly string[];
}

async function blockBench(t: TestContext, options: BenchOptions = {}): Promise<BlockBench> {
  // Runs before what the bench cleans up: the devices below cannot go first.
  const clean: { work(): void } = { work: () => {} };
  t.after(() => clean.work());
  const b = await loopBench(t, options);
  const above = () => {
    const names = b.devices().map((device) => device.slice('/dev/'.length));
    const numbers = names.map((name) => host('cat', `/sys/block/${name}/dev`).trim());
    return readOnlyOnes().flatMap(({ device, of }) => (numbers.includes(of) ? device : []));
  };
  clean.work = () => {
    for (const device of above()) host('losetup', '-d', device);
  };
  return { ...b, above };
}

/** As losetup tells of them. */
function readOnlyOnes(): readonly { readonly device: string; readonly of: string }[] {
  const lines = host('losetup', '--list', '--noheadings', '--raw', '--output', 'NAME,BACK-FILE').split('\n');
  return lines.flatMap((line) => {
    const [, device, of] = /^(\S+) \/dev\/\.switchboard-read-only-(\d+:\d+)-/.exec(line) ?? [];
    return device && of ? { device, of } : [];
  });
}

/** Writes as root would, past no cache: the error must come from opening or writing, not from a flush that nobody waits for. */
async function write(path: string, text: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.write(text.padEnd(4096, '.'));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const read = (path: string) =>
  host('dd', `if=${path}`, 'iflag=direct', 'bs=4096', 'count=1', 'status=none').replace(/\.*$/, '');

async function assertReadOnly(path: string): Promise<void> {
  await assert.rejects(write(path, 'spoilt'), (error) => ['EPERM', 'EROFS', 'EACCES'].includes(errnoOf(error) ?? ''));
}

test('what is published for reading cannot be written, and shows what is written elsewhere', async (t) => {
  const b = await blockBench(t);
  await b.stage(block);
  for (let round = 0; round < 2; round++) {
    await b.publish('rw', block);
    await b.publish('ro', forReading);
    await b.publish('mode', { capability: { type: 'block', mode: 'SINGLE_NODE_READER_ONLY' } });
  }
  assert.equal(b.above().length, 2, 'a repeated call makes nothing more');
  await write(b.path('rw'), 'one');
  for (const name of ['ro', 'mode']) {
    await assertReadOnly(b.path(name));
    assert.equal(read(b.path(name)), 'one');
  }
  for (const device of b.above()) host('blockdev', '--setrw', device);
  for (const name of ['ro', 'mode']) await assertReadOnly(b.path(name));
  await write(b.path('rw'), 'two');
  assert.equal(read(b.path('ro')), 'two');

  const { usage, condition } = await b.node.stats(call, { volumeId: 'v1', volumePath: b.path('ro') });
  assert.deepEqual([usage, condition?.abnormal], [[{ unit: 'BYTES', total: 16 * MiB }], false]);
  await assert.rejects(b.publish('ro', block), { code: 'ALREADY_EXISTS', message: /only for reading/ });
  await assert.rejects(b.publish('rw', forReading), { code: 'ALREADY_EXISTS', message: /can be written/ });
  assert.equal(b.above().length, 2);

  await b.unpublish('ro');
  await b.unpublish('ro');
  assert.equal(b.above().length, 1);
  await assertReadOnly(b.path('mode'));
  await write(b.path('rw'), 'three');
  for (const name of ['mode', 'rw']) await b.unpublish(name);
  await b.unstage();
  await assertGone(b);
});

test('it takes one program more, and as many as ever where nothing is published for reading', async (t) => {
  const b = await blockBench(t);
  const counted = async (work: () => Promise<unknown>) => {
    b.forget();
    await work();
    return b.commands.map((line) => line.split(' ')[0]);
  };
  await b.stage(block);
  assert.deepEqual(await counted(() => b.publish('rw', block)), ['mount']);
  assert.deepEqual(await counted(() => b.publish('ro', forReading)), ['losetup', 'mount']);
  assert.deepEqual(await counted(() => b.publish('ro', forReading)), []);
  assert.deepEqual(await counted(() => b.unpublish('ro')), ['umount', 'losetup']);
  assert.deepEqual(await counted(() => b.unpublish('rw')), ['umount']);
  await b.unstage();
  await assertGone(b);
});

test('a volume that grows does so where it is read, too', async (t) => {
  const b = await blockBench(t);
  await b.stage(block);
  await b.publish('ro', forReading);
  await b.publish('too', forReading);
  const sizeOf = async (name: string) =>
    (await b.node.stats(call, { volumeId: 'v1', volumePath: b.path(name) })).usage[0]?.total;
  const grow = async (size: number) => {
    await truncate(b.file, size);
    for (const device of b.devices()) host('losetup', '--set-capacity', device);
  };
  await grow(24 * MiB);
  for (let round = 0; round < 2; round++) {
    const request = { volumeId: 'v1', volumePath: b.path('ro'), capacity: { requiredBytes: 24 * MiB } };
    assert.deepEqual(await b.node.expand(call, request), { capacityBytes: 24 * MiB });
  }
  assert.deepEqual([await sizeOf('ro'), await sizeOf('too')], [24 * MiB, 24 * MiB]);
  await grow(32 * MiB);
  await b.publish('ro', forReading);
  assert.equal(await sizeOf('ro'), 32 * MiB);
  for (const name of ['ro', 'too']) await b.unpublish(name);
  await b.unstage();
  await assertGone(b);
});

test('without staging', async (t) => {
  const b = await blockBench(t);
  const direct = { stagingPath: undefined };
  for (let round = 0; round < 2; round++) {
    await b.publish('ro', { ...forReading, ...direct });
    await b.publish('rw', { ...block, ...direct });
  }
  await assertReadOnly(b.path('ro'));
  await write(b.path('rw'), 'one');
  assert.equal(read(b.path('ro')), 'one');
  await b.unpublish('rw');
  assert.equal(read(b.path('ro')), 'one');
  await b.unpublish('ro');
  await assertGone(b);
});

test('without records, what is mounted tells what is to be taken away', async (t) => {
  const b = await blockBench(t, { stateDirectory: undefined });
  await b.stage(block);
  await b.publish('ro', forReading);
  await b.unpublish('ro');
  assert.deepEqual(b.above(), []);
  await b.publish('ro', forReading);
  host('umount', b.path('ro'));
  await rm(b.path('ro'));
  await b.unstage();
  assert.deepEqual(b.above(), []);
  await assertGone(b);
});

test('a single writer is single among readers', async (t) => {
  const b = await blockBench(t);
  const single = { capability: { type: 'block', mode: 'SINGLE_NODE_SINGLE_WRITER' } } as const;
  await b.stage(single);
  await b.publish('ro', { ...single, readonly: true });
  await assert.rejects(b.publish('rw', single), {
    code: 'FAILED_PRECONDITION',
    message: /published at \S+\/ro already/,
  });
  await b.unpublish('ro');
  await b.publish('rw', single);
  const refused = { code: 'FAILED_PRECONDITION', message: /published at \S+\/rw already/ };
  await assert.rejects(b.publish('ro', { ...single, readonly: true }), refused);
  assert.deepEqual(b.above(), [], 'nothing is left of what was refused');
  await b.unpublish('ro');
  await b.unpublish('rw');
  await b.unstage();
  await assertGone(b);
});

test('while it is published for reading, the volume is not taken away', async (t) => {
  const b = await blockBench(t);
  await b.stage(block);
  await b.publish('ro', forReading);
  await assert.rejects(b.unstage(), { code: 'FAILED_PRECONDITION', message: /still mounted at \S+\/ro;/ });
  // By a device node of its own, as containers have them.
  const reader = await open(b.above()[0] ?? '', 'r');
  t.after(() => reader.close().catch(() => {}));
  await b.unpublish('ro');
  await assert.rejects(b.unstage(), { code: 'FAILED_PRECONDITION', message: /still in use by \/dev\/loop\d+;/ });
  assert.equal(b.devices().length, 1);
  assert.ok((await reader.read(Buffer.alloc(512), 0, 512, 0)).bytesRead, 'whoever reads is not disturbed');
  await reader.close();
  await b.unstage();
  await assertGone(b);
});

test('where no loop device can be made it is refused, and nothing is published', async (t) => {
  for (const losetup of ['/nowhere/losetup', '/bin/false']) {
    const b = await blockBench(t, { runner: { paths: { losetup } } });
    const { device } = await loopDevice(t, 8 * MiB);
    const direct = { context: { node_attach_driver: 'hostpath', path: device }, stagingPath: undefined };
    await assert.rejects(b.publish('ro', { ...forReading, ...direct }), {
      code: 'FAILED_PRECONDITION',
      message: /cannot be published read-only, which takes a loop device: .*the kernel has to have the module loop/,
    });
    assert.deepEqual(await b.mounts(), []);
    await b.publish('rw', { ...block, ...direct });
    await b.unpublish('rw');
    await b.unpublish('ro');
    await assertGone(b);
  }
});

test('sectors are as large as those of the device', async (t) => {
  const b = await blockBench(t);
  host('losetup', '--find', '--sector-size', '4096', b.file);
  const [device = ''] = b.devices();
  const direct = { context: { node_attach_driver: 'hostpath', path: device }, stagingPath: undefined };
  await b.publish('ro', { ...forReading, ...direct });
  assert.equal(host('blockdev', '--getss', b.path('ro')), '4096\n');
  assert.equal(read(b.path('ro')).length, 4096);
  await b.unpublish('ro');
  assert.deepEqual(b.above(), []);
});

for (const [operation, sequels] of [
  ['publish', ['publish', 'unpublish', 'unstage']],
  ['unpublish', ['unpublish']],
] as const) {
  for (const then of sequels) {
    test(`killed at any step of ${operation}: ${then} gets to the right state`, async (t) => {
      const b = await blockBench(t);
      const task = { state: b.state, file: b.file, stagingPath: b.path('stage'), targetPath: b.path('ro'), operation };
      await b.stage(block);
      await write(b.path('stage/block_device'), 'precious');
      for (let killAt = 1; ; killAt++) {
        if (operation === 'unpublish') await b.publish('ro', forReading);
        const file = join(import.meta.dirname, 'node-records-child.ts');
        const args = ['--no-warnings', file, JSON.stringify({ ...task, killAt })];
        const [code, signal] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
        if (signal !== 'SIGKILL') {
          assert.equal(code, 0);
          assert.ok(killAt > 5, `${killAt - 1} steps`);
          break;
        }
        if (then === 'publish') {
          await b.publish('ro', forReading);
          await assertReadOnly(b.path('ro'));
          assert.equal(read(b.path('ro')), 'precious', `killed before step ${killAt}`);
          assert.deepEqual([b.above().length, (await b.records()).length], [1, 2]);
        }
        if (then === 'unstage') await unstageOrSay(b);
        await b.unpublish('ro');
        assert.deepEqual([b.above(), (await b.records()).length], [[], then === 'unstage' ? 0 : 1]);
        assert.deepEqual(leftInDev(), []);
        if (then === 'unstage') await b.stage(block);
      }
      await b.unpublish('ro');
      await b.unstage();
      await assertGone(b);
    });
  }
}

/** The volume stays while it is published, and is taken away when only remains of a publication are there. */
async function unstageOrSay(b: BlockBench): Promise<void> {
  const isPublished = (await b.mounts()).includes('ro');
  const unstaged = await b.unstage().then(
    () => true,
    (error: { code: string }) => assert.equal(error.code, 'FAILED_PRECONDITION'),
  );
  assert.equal(unstaged === true, !isPublished);
  if (isPublished) {
    await b.unpublish('ro');
    await b.unstage();
  }
}

const leftInDev = () => host('find', '/dev', '-maxdepth', '1', '-name', '.switchboard-*').split('\n').filter(Boolean);

test('what is left of a publication is found by its record, and cleaned up', async (t) => {
  const b = await blockBench(t, { records: { now: () => 1, bootId: async () => 'boot-1' } });
  await b.stage(block);
  await b.publish('ro', forReading);
  host('umount', b.path('ro'));
  for (const bootId of ['boot-1', 'boot-2']) {
    const records = { bootId: async () => bootId };
    const plane = makePlane({ run: createRunner(), stateDirectory: b.state, attachers, records });
    const table = await readMountTable();
    const look = { table, bootId, now: Date.now(), deadMounts: true };
    const found = await findLeftovers(call, plane.tools, await plane.records.all(table), look);
    assert.deepEqual(
      found.map(({ kind, record }) => [kind, record?.attacher, record?.place]),
      [['not mounted', 'read-only', b.path('ro')]],
    );
    if (bootId === 'boot-2') for (const leftover of found) await cleanLeftover(call, plane, leftover);
  }
  assert.deepEqual([b.above(), (await b.records()).length], [[], 1]);
  await b.unstage();
  await assertGone(b);
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('after a reboot, publishing makes it anew', async (t) => {
  const b = await blockBench(t);
  const reboot = () => {
    for (const path of ['ro', 'stage/block_device']) host('umount', b.path(path));
    for (const device of [...b.above(), ...b.devices()]) host('losetup', '-d', device);
  };
  for (let round = 0; round < 2; round++) {
    await b.stage(block);
    await b.publish('ro', forReading);
    await assertReadOnly(b.path('ro'));
    if (round === 0) reboot();
  }
  await b.unpublish('ro');
  await b.unstage();
  await assertGone(b);
});
