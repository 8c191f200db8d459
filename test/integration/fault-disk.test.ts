/** Disks that are full: small file systems on loop devices. */
import assert from 'node:assert/strict';
import { open, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { errnoOf } from '../../src/core/errors.ts';
import { services } from '../../src/generated/services.js';
import { createSnapshot, createVolume, deleteSnapshot, deleteVolume, mib, outcomeOf } from './csi-calls.ts';
import { mountImage } from './local-hostpath-support.ts';
import {
  assertAtRest,
  assertLeavesNothing,
  localDirectories,
  makeSite,
  type Server,
  type Site,
} from './server-under-test.ts';

const { Controller } = services;
const skip = process.getuid?.() !== 0 && 'NOT TESTED: needs root';

interface SmallDisk {
  readonly site: Site;
  readonly server: Server;
  readonly disk: string;
}

/** A server with a connection `disk` on a file system of 16 MiB with these options of mkfs.ext4, and a volume `one` there. */
async function smallDisk(t: TestContext, ...options: readonly string[]): Promise<SmallDisk> {
  const site = await makeSite(t);
  const disk = await mountImage(t, 16, [
    'mkfs.ext4',
    '-q',
    '-m',
    '0',
    '-E',
    'lazy_itable_init=0,lazy_journal_init=0',
    ...options,
  ]);
  await rm(join(disk, 'lost+found'), { recursive: true });
  await site.connect('disk', localDirectories(disk));
  const server = await site.start();
  await createVolume(server, 'one', { connection: 'disk' });
  return { site, server, disk };
}

/** Writes until nothing more can be. */
async function fill(path: string): Promise<void> {
  const file = await open(path, 'w');
  try {
    for (const size of [2 ** 20, 2 ** 12, 1]) {
      const chunk = Buffer.alloc(size, 1);
      const isFull = (error: unknown) => {
        if (errnoOf(error) !== 'ENOSPC') throw error;
        return true;
      };
      while (
        !(await file
          .write(chunk)
          .then(() => file.sync())
          .then(() => false, isFull))
      );
    }
  } finally {
    await file.close();
  }
}

async function refused(work: Promise<unknown>): Promise<void> {
  const { code, message } = await outcomeOf(work);
  assert.equal(code, 'RESOURCE_EXHAUSTED', message);
  assert.match(message, /no space left on device/i);
}

const unfinished = (disk: string) => readdir(join(disk, '.switchboard/tmp'));

async function assertEmpties({ site, server, disk }: SmallDisk): Promise<void> {
  const left = (await readdir(disk, { recursive: true })).sort();
  assert.deepEqual(left, ['.switchboard', ...['p', 's', 'tmp', 'v'].map((name) => `.switchboard/${name}`), 's', 'v']);
  await assertAtRest(site, server);
  await assertLeavesNothing(site, server);
}

test('a copy that does not fit is refused, and leaves no byte behind', { skip }, async (t) => {
  const small = await smallDisk(t);
  const { server, disk } = small;
  await writeFile(join(disk, 'v/one/file'), Buffer.alloc(9 * mib, 1));
  const { bfree, ffree } = await statfs(disk);
  for (let round = 0; round < 3; round++) {
    await refused(createVolume(server, 'two', { connection: 'disk', fromVolume: 'v:disk/one' }));
    await refused(createSnapshot(server, 'snap', 'v:disk/one'));
    const now = await statfs(disk);
    assert.deepEqual([now.bfree, now.ffree], [bfree, ffree]);
    assert.deepEqual(await unfinished(disk), []);
  }
  assert.deepEqual(await readdir(join(disk, 'v')), ['one']);
  assert.deepEqual(await readdir(join(disk, 's')), []);
  await createVolume(server, 'two', { connection: 'disk' });
  for (const id of ['v:disk/one', 'v:disk/two']) await deleteVolume(server, id);
  await assertEmpties(small);
});

test('on a disk without a free byte nothing half is made, sizes stay, and removing works', { skip }, async (t) => {
  const small = await smallDisk(t);
  const { server, disk } = small;
  const snapshot = await createSnapshot(server, 'snap', 'v:disk/one');
  await fill(join(disk, 'v/one/file'));
  for (let round = 0; round < 3; round++) {
    await refused(createVolume(server, 'two', { connection: 'disk' }));
    const grow = { volumeId: 'v:disk/one', capacityRange: { requiredBytes: 2 * mib } };
    await refused(server.call(Controller.ControllerExpandVolume, grow));
    await refused(createSnapshot(server, 'other', 'v:disk/one'));
    assert.deepEqual(await unfinished(disk), []);
  }
  const { entries } = await server.call(Controller.ListVolumes, {});
  assert.deepEqual(
    entries.map(({ volume }) => [volume?.volumeId, volume?.capacityBytes]),
    [['v:disk/one', mib]],
  );
  await server.call(Controller.ControllerGetVolume, { volumeId: 'v:disk/one' });
  await createVolume(server, 'elsewhere').then((id) => deleteVolume(server, id));
  await deleteSnapshot(server, snapshot);
  await deleteVolume(server, 'v:disk/one');
  await assertEmpties(small);
});

test('on a disk without a free inode nothing half is made, and removing works', { skip }, async (t) => {
  const small = await smallDisk(t, '-N', '256');
  const { server, disk } = small;
  await assert.rejects(
    async () => {
      for (let number = 0; ; number++) await writeFile(join(disk, `v/one/${number}`), '');
    },
    { code: 'ENOSPC' },
  );
  for (let round = 0; round < 3; round++) {
    await refused(createVolume(server, 'two', { connection: 'disk' }));
    await refused(createVolume(server, 'two', { connection: 'disk', fromVolume: 'v:disk/one' }));
    await refused(createSnapshot(server, 'snap', 'v:disk/one'));
    assert.deepEqual(await unfinished(disk), []);
  }
  assert.deepEqual(await readdir(join(disk, 'v')), ['one']);
  await deleteVolume(server, 'v:disk/one');
  await createVolume(server, 'two', { connection: 'disk' });
  await deleteVolume(server, 'v:disk/two');
  await assertEmpties(small);
});
