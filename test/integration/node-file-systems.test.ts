/** File systems on block devices: who may make, check and grow one, and when. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import type { AccessMode, VolumeCapability } from '../../src/core/volume.ts';
import { hostpath } from '../../src/node/attachers/hostpath.ts';
import { fileSystemNamed } from '../../src/node/file-systems/index.ts';
import { readDevice } from '../../src/node/file-systems/probe.ts';
import { readMountTable } from '../../src/node/mount-table.ts';
import {
  type Bench,
  type BenchOptions,
  bench,
  blockCapability,
  call,
  enterMountNamespace,
  host,
  loopDevice,
  mountCapability,
} from './node-support.ts';

enterMountNamespace(import.meta.url);

const MiB = 2 ** 20;
const as = (fsType: string, mode: AccessMode = 'SINGLE_NODE_WRITER'): { capability: VolumeCapability } => ({
  capability: { ...mountCapability, fsType, mode },
});

async function deviceBench(
  t: TestContext,
  size: number,
  options: BenchOptions = {},
): Promise<Bench & { device: string; file: string }> {
  const loop = await loopDevice(t, size);
  const b = await bench(t, { context: { node_attach_driver: 'bind', path: loop.device }, ...options });
  return { ...b, ...loop };
}

const programs = (b: Bench) => b.commands.map((line) => line.split(' ')[0] ?? '');
const made = (b: Bench) => programs(b).filter((program) => program.startsWith('mkfs'));

async function enlarge(b: { device: string; file: string }, size: number): Promise<void> {
  await truncate(b.file, size);
  host('losetup', '--set-capacity', b.device);
}

/** A program whose output reaches the test by a pipe with a name, and that goes on when the test says so by another. */
async function gated(t: TestContext, program: string) {
  const folder = await mkdtemp(join(tmpdir(), 'gated-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['begun', 'go', 'ended']) host('mkfifo', join(folder, name));
  const path = join(folder, program);
  const real = host('which', program).trim();
  const script = `#!/bin/bash
cd ${folder}
echo $$ >begun
read -r _ <go
printf '%.0sx' {1..100000}
printf '%.0sx' {1..100000} >&2
${real} "$@"
echo $? >ended
`;
  await writeFile(path, script);
  await chmod(path, 0o755);
  const read = (name: string) => readFile(join(folder, name), 'utf8');
  return {
    path,
    begun: async () => Number(await read('begun')),
    go: () => writeFile(join(folder, 'go'), '\n'),
    ended: async () => (await read('ended')).trim(),
  };
}

for (const mode of ['MULTI_NODE_READER_ONLY', 'MULTI_NODE_SINGLE_WRITER', 'MULTI_NODE_MULTI_WRITER'] as const) {
  test(`${mode}: nothing checks or grows what other nodes may have mounted`, async (t) => {
    const settings = { mount: { checkFilesystem: { ext2: { enabled: true }, xfs: { enabled: true } } } };
    for (const [fsType, size] of [
      ['ext2', 64],
      ['xfs', 320],
    ] as const) {
      const b = await deviceBench(t, size * MiB, { settings });
      host(`mkfs.${fsType}`, '-q', b.device);
      await enlarge(b, 2 * size * MiB);
      await b.stage(as(fsType, mode));
      const changing = programs(b).filter((program) => /fsck|repair|resize2fs/.test(program));
      assert.deepEqual(changing, []);
      await b.unstage();
      b.forget();
      await b.stage(as(fsType));
      assert.ok(programs(b).includes(fsType === 'xfs' ? 'xfs_repair' : 'fsck'), 'a node of its own does');
    }
  });
}

test('one disk’s file system is for one node, unless the configuration names the mode', async (t) => {
  const { device } = await loopDevice(t, 64 * MiB);
  const context = { node_attach_driver: 'san', path: device };
  const attachers = {
    san: (tools: Parameters<typeof hostpath>[0]) => ({ ...hostpath(tools), reachedByMany: true as const }),
  };
  const b = await bench(t, { context, attachers });
  const mode = 'MULTI_NODE_MULTI_WRITER';
  const refused = { code: 'FAILED_PRECONDITION', message: /csi\.access_modes/ };
  await assert.rejects(b.stage(as('', mode)), refused);
  await assert.rejects(b.publish('t', { stagingPath: undefined, ...as('', mode) }), refused);
  assert.deepEqual(b.commands, []);
  const block = { capability: { ...blockCapability, mode } } as const;
  await b.stage(block);
  await b.publish('dev', block);
  await b.unpublish('dev');
  await b.unstage();
  await b.stage(as('', 'MULTI_NODE_SINGLE_WRITER'));
  await b.unstage();
  const named = await bench(t, { context, attachers, accessModes: [mode] });
  await named.stage(as('', mode));
  await named.publish('t', as('', mode));
});

test('a process that is killed while it formats leaves a whole file system, and nobody disturbs the making', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  const mkfs = await gated(t, 'mkfs.ext4');
  const task = { state: b.state, path: b.device, stagingPath: b.path('stage'), paths: { 'mkfs.ext4': mkfs.path } };
  const script = join(import.meta.dirname, 'node-format-child.ts');
  const child = spawn(process.execPath, ['--no-warnings', script, JSON.stringify(task)], { stdio: 'inherit' });
  const pid = await mkfs.begun();
  t.after(() => spawnSync('kill', ['-KILL', String(pid)]));
  child.kill('SIGKILL');
  await once(child, 'exit');

  const busy = { code: 'UNAVAILABLE', message: new RegExp(`being formatted by .mkfs.ext4. \\(process ${pid}\\)`) };
  await assert.rejects(b.stage(), busy);
  host('dd', 'if=/dev/urandom', `of=${b.device}`, 'bs=4096', 'count=1', 'seek=3', 'status=none');
  await assert.rejects(b.stage(), busy, 'what is half made is not taken for data');
  await mkfs.go();
  assert.equal(await mkfs.ended(), '0');
  await b.stage();
  assert.deepEqual(made(b), []);
  assert.equal((await b.mountAt('stage'))?.fsType, 'ext4');
});

test('making a file system takes as long as it takes', async (t) => {
  const b = await deviceBench(t, 64 * MiB, { limits: { ...defaultTimeLimits, filesystem: 1 } });
  await b.stage();
  assert.deepEqual(made(b), ['mkfs.ext4']);
});

test('what a program that outlives its caller says is told when it fails', async () => {
  const run = createRunner();
  const command = { program: 'sh', args: ['-c', 'echo out; echo what is wrong >&2; exit 3'], timeoutMs: 10_000 };
  await assert.rejects(run(call, { ...command, outlives: true }), {
    code: 'INTERNAL',
    message: /`sh` failed \(exit 3\): .*what is wrong/,
  });
});

test('a volume may say how its file system is made, but not more than that', async (t) => {
  const { device } = await loopDevice(t, 64 * MiB);
  const staged = async (formatOptions: string) => {
    const settings = { format: { ext4: { customOptions: ['-L', 'of-the-node'] } } };
    const b = await bench(t, { context: { node_attach_driver: 'bind', path: device, formatOptions }, settings });
    await b.stage();
    await b.unstage();
    return b;
  };
  const refused = { code: 'INVALID_ARGUMENT', message: /formatOptions/ };
  await assert.rejects(staged('-d /etc'), refused);
  await assert.rejects(staged(`-L x ${device}`), refused);
  assert.ok(
    (await staged(`-L 'of the class' -i 65536`)).commands[3]?.startsWith('mkfs.ext4 -q -m 0 -L of-the-node -L of'),
  );
  assert.match(host('dumpe2fs', '-h', device), /volume name:\s+of the class\n/);
  // It is there, and nobody asks any more how it should be made.
  assert.deepEqual(made(await staged('-d /etc')), []);
});

test('a disk that is write-protected is for readers', async (t) => {
  const settings = { mount: { checkFilesystem: { ext4: { enabled: true } } } };
  const b = await deviceBench(t, 64 * MiB, { settings });
  // The kernel keeps it for whoever gets this loop device next.
  t.after(() => spawnSync('blockdev', ['--setrw', b.device]));
  const blank = { code: 'FAILED_PRECONDITION', message: /is blank, and it is write-protected/ };
  host('blockdev', '--setro', b.device);
  await assert.rejects(b.stage(as('', 'SINGLE_NODE_READER_ONLY')), blank);
  await assert.rejects(b.stage(), blank);
  host('blockdev', '--setrw', b.device);
  host('mkfs.ext4', '-q', b.device);
  host('blockdev', '--setro', b.device);
  for (const mode of ['SINGLE_NODE_READER_ONLY', 'MULTI_NODE_READER_ONLY'] as const) {
    for (let round = 0; round < 2; round++) {
      await b.stage(as('', mode));
      await b.publish('t', as('', mode));
    }
    assert.ok((await b.mountAt('stage'))?.options.includes('ro'));
    await assert.rejects(writeFile(b.path('t/x'), ''), { code: 'EROFS' });
    await b.unpublish('t');
    await b.unstage();
  }
  assert.ok(!programs(b).includes('fsck'));
  await assert.rejects(b.stage(), { code: 'FAILED_PRECONDITION', message: /it is read-only/ });
  // As ever where it can be written: others may write to it later.
  host('blockdev', '--setrw', b.device);
  await b.stage(as('', 'SINGLE_NODE_READER_ONLY'));
  assert.ok(!(await b.mountAt('stage'))?.options.includes('ro'));
});

test('ext2 grows when it is staged next, and says so until then', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  await b.stage(as('ext2'));
  await b.publish('t', as('ext2'));
  await writeFile(b.path('t/data'), 'precious');
  await enlarge(b, 128 * MiB);
  const expand = () =>
    b.node.expand(call, { volumeId: 'v1', volumePath: b.path('t'), capacity: { requiredBytes: 128 * MiB } });
  const later = { code: 'FAILED_PRECONDITION', message: /64 MiB smaller.*ext2 grows only while it is not mounted/ };
  await assert.rejects(expand(), later);
  await b.stage(as('ext2'));
  await b.unpublish('t');
  await b.unstage();
  // For readers, it stays as it is.
  await b.publish('r', { stagingPath: undefined, ...as('ext2'), readonly: true });
  await b.unpublish('r');

  for (let round = 0; round < 2; round++) {
    b.forget();
    await b.stage(as('ext2'));
    assert.equal(programs(b).includes('resize2fs'), round === 0);
    await b.publish('t', as('ext2'));
    assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');
    assert.deepEqual(await expand(), { capacityBytes: 128 * MiB });
    await b.unpublish('t');
    await b.unstage();
  }
});

test('a file system that cannot be grown before it is mounted is used as it is', async (t) => {
  const b = await deviceBench(t, 64 * MiB, { runner: { paths: { resize2fs: '/bin/false' } } });
  host('mkfs.ext2', '-q', b.device);
  await enlarge(b, 128 * MiB);
  await b.stage(as('ext2'));
  assert.ok(programs(b).includes('resize2fs'));
  assert.equal((await b.mountAt('stage'))?.fsType, 'ext2');
});

const isThere = (program: string) => {
  try {
    return host('which', program) !== '';
  } catch {
    return false;
  }
};

/** Not every kernel can mount these. The lab's can. */
async function stageMaybe(b: Bench, fsType: string): Promise<void> {
  try {
    await b.stage(as(fsType));
  } catch (error) {
    assert.match(String(error), /unknown filesystem type/);
  }
  await b.unstage();
}

for (const [fsType, program, grows] of [
  ['ntfs', 'mkfs.ntfs', true],
  ['vfat', 'mkfs.vfat', false],
  ['exfat', 'mkfs.exfat', false],
] as const) {
  const skip = isThere(program) && (!grows || isThere('ntfsresize')) ? false : `there is no ${program}`;
  test(`${fsType}: a disk is formatted once, in moments, and ${grows ? 'grows' : 'does not grow'}`, {
    skip,
  }, async (t) => {
    const b = await deviceBench(t, 64 * MiB);
    const tools = { run: createRunner(), limits: defaultTimeLimits, settings: {}, readTable: readMountTable };
    const { superblock } = fileSystemNamed(fsType) ?? {};
    assert.ok(superblock);
    const size = async () => {
      const bytes = await readDevice(call, tools, { path: b.device, number: '' }, superblock.offset, superblock.length);
      return superblock.size(bytes) ?? 0;
    };
    const isAbout = (bytes: number, wanted: number) => assert.ok(bytes <= wanted && bytes > wanted - MiB, `${bytes}`);
    assert.equal(superblock.size(Buffer.alloc(512)), undefined);
    await stageMaybe(b, fsType);
    isAbout(await size(), 64 * MiB);
    await stageMaybe(b, fsType);
    assert.deepEqual(made(b), [program]);
    if (fsType === 'ntfs') assert.ok(b.commands.includes(`mkfs.ntfs -F -Q -q ${b.device}`));
    await enlarge(b, 128 * MiB);
    await stageMaybe(b, fsType);
    isAbout(await size(), (grows ? 128 : 64) * MiB);
    if (fsType === 'ntfs') host('ntfsfix', '--no-action', b.device);
  });
}

for (const [fsType, size] of [
  ['xfs', 320],
  ['btrfs', 256],
] as const) {
  test(`${fsType}: a volume and its clone are mounted side by side, and each is itself`, async (t) => {
    const one = await deviceBench(t, size * MiB);
    await one.stage(as(fsType));
    await writeFile(one.path('stage/name'), 'one');
    await one.unstage();
    const other = await deviceBench(t, size * MiB);
    await copyFile(one.file, other.file);
    await one.stage(as(fsType));
    try {
      await other.stage(as(fsType));
    } catch (error) {
      // Older kernels than 6.7 know a file system of btrfs by its UUID alone.
      assert.equal(fsType, 'btrfs', String(error));
      return t.diagnostic(`this kernel does not mount clones of btrfs: ${error}`);
    }
    await writeFile(other.path('stage/name'), 'other');
    assert.equal(await readFile(one.path('stage/name'), 'utf8'), 'one');
    for (const b of [one, other]) await b.unstage();
    for (const b of [other, one]) await b.stage(as(fsType));
    assert.equal(await readFile(one.path('stage/name'), 'utf8'), 'one');
    assert.equal(await readFile(other.path('stage/name'), 'utf8'), 'other');
  });
}
