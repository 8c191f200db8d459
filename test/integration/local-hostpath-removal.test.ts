import assert from 'node:assert/strict';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { asCallError } from '../../src/core/errors.ts';
import { failure, makeBench, makeFolder, mountImage, sh, volumeSpec } from './local-hostpath-support.ts';

const mkfs = {
  ext4: ['mkfs.ext4', '-q', '-F'],
  xfs: ['mkfs.xfs', '-q', '-f', '-m', 'reflink=1'],
  btrfs: ['mkfs.btrfs', '-q', '-f'],
} as const;

for (const [name, mib, command] of [
  ['ext4', 16, ['mkfs.ext4', '-q', '-F', '-m', '0']],
  ['ext4 without inodes', 16, ['mkfs.ext4', '-q', '-F', '-N', '64']],
  ['xfs', 300, mkfs.xfs],
  ['btrfs', 40, ['mkfs.btrfs', '-q', '-f', '--mixed', '-m', 'single', '-d', 'single']],
] as const) {
  test(`without a byte left on ${name}, volumes are refused and can still be deleted`, async (t) => {
    const point = await mountImage(t, mib, command);
    const { base, call, volumes } = await makeBench(t, { base: join(point, 'base') });
    await volumes.create(call, volumeSpec('v1'));
    await sh('python3', '-c', fillUp, join(base, 'v/v1'));
    await assert.rejects(
      volumes.create(call, volumeSpec('v2')),
      (error) => asCallError(error).code === 'RESOURCE_EXHAUSTED',
    );
    await volumes.delete(call, 'v1');
    for (const folder of ['v', '.switchboard/tmp']) assert.deepEqual(await readdir(join(base, folder)), []);
    await volumes.create(call, volumeSpec('v2'));
  });
}

/** Takes every block, then every inode. */
const fillUp = `
import os, sys
os.chdir(sys.argv[1])
for size in (2**20, 2**12, 1):
    try:
        with open('data%d' % size, 'wb', buffering=0) as file:
            while True: file.write(b'x' * size)
    except OSError: pass
for kind in ('f', 'd'):
    try:
        for i in range(10**6):
            if kind == 'f': os.close(os.open('f%d' % i, os.O_CREAT | os.O_WRONLY))
            else: os.mkdir('d%d' % i)
    except OSError: pass
os.sync()
try: os.mkdir('one more')
except OSError: pass
`;

test('removal copes with deep, wide and odd trees, and stays within the volume', async (t) => {
  const { base, call, volumes } = await makeBench(t);
  const outside = await makeFolder(t);
  await writeFile(join(outside, 'precious'), 'x');
  await volumes.create(call, volumeSpec('v1'));
  const volume = join(base, 'v/v1');
  await sh('python3', '-c', deepTree, volume);
  await sh(
    'sh',
    '-c',
    'cd "$0" && mkdir wide && cd wide && seq 3000 | xargs touch && seq -f d%g 500 | xargs mkdir',
    volume,
  );
  await symlink(outside, join(volume, 'link'));
  await sh('mkfifo', join(volume, 'fifo'));
  await sh('mkdir', '-m', '000', join(volume, 'closed'));
  await volumes.delete(call, 'v1');
  assert.deepEqual(await readdir(join(base, 'v')), []);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
  assert.equal(await readFile(join(outside, 'precious'), 'utf8'), 'x');
});

/** A chain of folders whose path has 40 kB. */
const deepTree = `
import os, sys
os.chdir(sys.argv[1])
for _ in range(200):
    os.mkdir('d' * 200); os.chdir('d' * 200)
open('file', 'w').close()
`;

test('removal of an immutable file says what is wrong, and the next call completes it', async (t) => {
  const point = await mountImage(t, 32, mkfs.ext4);
  const { base, call, volumes } = await makeBench(t, { base: join(point, 'base') });
  await volumes.create(call, volumeSpec('v1'));
  await writeFile(join(base, 'v/v1/stays'), 'x');
  await sh('chattr', '+i', join(base, 'v/v1/stays'));
  await assert.rejects(volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION', /immutable/));
  await sh('chattr', '-R', '-i', join(base, '.switchboard/tmp'));
  await volumes.delete(call, 'v1');
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});
