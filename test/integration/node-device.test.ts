import assert from 'node:assert/strict';
import { lstat, mkdir, open, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import type { AccessMode, VolumeCapability } from '../../src/core/volume.ts';
import type { Identity, MakeAttacher } from '../../src/node/attachers/attacher.ts';
import { hostpath } from '../../src/node/attachers/hostpath.ts';
import { fileSystemNamed } from '../../src/node/file-systems/index.ts';
import { probeDevice, readDevice } from '../../src/node/file-systems/probe.ts';
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
const as = (fsType: string, more: Partial<VolumeCapability> = {}): { capability: VolumeCapability } => ({
  capability: { ...mountCapability, fsType, ...more } as VolumeCapability,
});
const mode = (of: AccessMode) => as('', { mode: of });
const block = { capability: blockCapability };

async function deviceBench(
  t: TestContext,
  size: number,
  options: BenchOptions = {},
): Promise<Bench & { device: string; file: string }> {
  const loop = await loopDevice(t, size);
  const b = await bench(t, { context: { node_attach_driver: 'bind', path: loop.device }, ...options });
  return { ...b, ...loop };
}

const programs = (b: Bench) => b.commands.map((line) => line.split(' ')[0]);

/** Gives the device more room, as a storage system does when a volume is expanded. */
async function enlarge(b: { device: string; file: string }, size: number): Promise<void> {
  await truncate(b.file, size);
  host('losetup', '--set-capacity', b.device);
}

async function bytesOf(b: Bench, name: string): Promise<number> {
  const { usage } = await b.node.stats(call, { volumeId: 'v1', volumePath: b.path(name) });
  return usage.find((one) => one.unit === 'BYTES')?.total ?? 0;
}

/** The kernel lets only holders of CAP_SYS_RESOURCE (bit 24) grow a mounted ext file system; not every test machine's root is one. */
async function mayGrow(fsType: string): Promise<boolean> {
  if (!fsType.startsWith('ext')) return true;
  const effective = /CapEff:\s+([0-9a-f]+)/.exec(await readFile('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> 24n) & 1n) === 1n;
}

for (const [fsType, small, large] of [
  ['ext4', 64, 128],
  ['ext3', 64, 128],
  ['xfs', 320, 640],
  ['btrfs', 256, 512],
] as const) {
  test(`${fsType}: a blank device is formatted once, keeps its data, and grows`, async (t) => {
    const b = await deviceBench(t, small * MiB);
    await b.stage(as(fsType));
    assert.equal(programs(b).filter((program) => program === `mkfs.${fsType}`).length, 1);
    assert.equal((await b.mountAt('stage'))?.fsType, fsType);
    await b.publish('t', as(fsType));
    await writeFile(b.path('t/data'), 'precious');
    const before = await bytesOf(b, 't');
    await b.stage(as(fsType));
    await b.publish('t', as(fsType));
    await b.unpublish('t');
    await b.unstage();

    b.forget();
    await b.stage(as(fsType));
    assert.ok(!programs(b).some((program) => program?.startsWith('mkfs')), 'it is not formatted again');
    assert.ok(programs(b).length <= 3, `nothing to grow: ${b.commands.join('\n')}`);
    await b.publish('t', as(fsType));
    assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');

    // While it is in use.
    await enlarge(b, large * MiB);
    if (!(await mayGrow(fsType))) {
      const request = { volumeId: 'v1', volumePath: b.path('t'), capacity: {} };
      const lacking = { code: 'FAILED_PRECONDITION', message: /needs the capability CAP_SYS_RESOURCE/ };
      return await assert.rejects(b.node.expand(call, request), lacking);
    }
    for (let round = 0; round < 2; round++) {
      const capacity = { requiredBytes: large * MiB };
      const expanded = await b.node.expand(call, { volumeId: 'v1', volumePath: b.path('t'), capacity });
      assert.equal(expanded.capacityBytes, large * MiB);
    }
    assert.ok((await bytesOf(b, 't')) > before * 1.5);
    assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');
  });

  test(`${fsType}: what grew while it was not staged is grown when it is`, async (t) => {
    const b = await deviceBench(t, small * MiB);
    await b.stage(as(fsType));
    const before = await bytesOf(b, 'stage');
    await b.unstage();
    await enlarge(b, large * MiB);
    await b.stage(as(fsType));
    if (!(await mayGrow(fsType))) return assert.equal(await bytesOf(b, 'stage'), before, 'it is staged as it is');
    assert.ok((await bytesOf(b, 'stage')) > before * 1.5);
    b.forget();
    await b.stage(as(fsType));
    // What xfs writes to the device comes later than what it says.
    assert.deepEqual(programs(b), fsType === 'xfs' ? ['od', 'xfs_growfs'] : ['od'], 'once is enough');
  });
}

test('without fs_type it is ext4, and without blocks for the superuser', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  await b.stage();
  assert.equal((await b.mountAt('stage'))?.fsType, 'ext4');
  assert.match(host('dumpe2fs', '-h', b.device), /Reserved block count:\s+0\n/);
});

test('the configured options are used for every format, and are not changed by it', async (t) => {
  const customOptions = Object.freeze(['-L', 'label-of-mine']);
  const settings = { format: { ext4: { customOptions }, xfs: { customOptions: ['-L', 'never'] } } };
  for (let round = 0; round < 2; round++) {
    const b = await deviceBench(t, 64 * MiB, { settings });
    await b.stage(as('ext4'));
    assert.ok(b.commands.includes(`mkfs.ext4 -q -m 0 -L label-of-mine ${b.device}`));
  }
  assert.deepEqual(settings.format.ext4.customOptions, ['-L', 'label-of-mine']);
});

test('a file system other than the one asked for is mounted, never formatted over', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  host('mkfs.ext4', '-q', b.device);
  await b.stage(as('xfs'));
  assert.equal((await b.mountAt('stage'))?.fsType, 'ext4');
  assert.ok(!programs(b).some((program) => program?.startsWith('mkfs')));
});

async function write(device: string, position: number, text: string): Promise<void> {
  const handle = await open(device, 'r+');
  await handle.write(Buffer.from(text, 'latin1'), 0, text.length, position);
  await handle.sync();
  await handle.close();
}

for (const [what, spoil] of [
  ['data at its beginning', (device: string) => write(device, 8192, 'x')],
  ['data at its end', (device: string) => write(device, 64 * MiB - 3, 'x')],
  [
    'a partition table',
    (device: string) => write(device, 446, `${'\0'.repeat(4)}\x83${'\0'.repeat(7)}\x01${'\0'.repeat(51)}U\xaa`),
  ],
  ['swap space', async (device: string) => void host('mkswap', device)],
  ['a LUKS header', (device: string) => write(device, 0, `LUKS\xba\xbe\0\x01aes${'\0'.repeat(29)}xts-plain64`)],
  ['an LVM volume', (device: string) => write(device, 512, `LABELONE\x01${'\0'.repeat(7)}`)],
] as const) {
  test(`a device with ${what} is refused and left as it is`, async (t) => {
    const b = await deviceBench(t, 64 * MiB);
    await spoil(b.device);
    const before = host('sha256sum', b.device);
    await assert.rejects(b.stage(), { code: 'FAILED_PRECONDITION', message: /refusing to format/ });
    await assert.rejects(b.publish('t', { stagingPath: undefined }), { code: 'FAILED_PRECONDITION' });
    assert.equal(host('sha256sum', b.device), before);
    assert.ok(!programs(b).some((program) => program?.startsWith('mkfs')));
    assert.deepEqual(await readdir(b.root), ['vol']);
  });
}

test('a device that is gone is refused', async () => {
  const tools = { run: async () => assert.fail('nothing may be run'), limits: {}, settings: {} };
  const content = probeDevice(call, tools as never, { path: '/dev/none', number: '259:99999' });
  await assert.rejects(content, { code: 'FAILED_PRECONDITION', message: /no medium or is gone/ });
});

for (const [fsType, args] of [
  ['ext4', ['-q', '-b', '4096', '-O', '^64bit', '@', '40M']],
  ['ext4', ['-q', '-b', '1024', '@', '40M']],
  ['ext2', ['-q', '@', '40M']],
  ['xfs', ['-q', '-d', 'size=320m', '@']],
  ['btrfs', ['-q', '-b', '256M', '@']],
] as const) {
  test(`the size of ${fsType} (${args.join(' ')}) is read from the device`, async (t) => {
    const { device } = await loopDevice(t, 512 * MiB);
    host(`mkfs.${fsType}`, ...args.map((arg) => (arg === '@' ? device : arg)));
    const superblock = fileSystemNamed(fsType)?.superblock;
    assert.ok(superblock);
    const tools = { run: createRunner(), limits: defaultTimeLimits, settings: {}, readTable: readMountTable };
    const bytes = await readDevice(call, tools, { path: device, number: '' }, superblock.offset, superblock.length);
    assert.equal(superblock.size(bytes), { ext4: 40, ext2: 40, xfs: 320, btrfs: 256 }[fsType] * MiB);
    assert.equal(superblock.size(Buffer.alloc(superblock.length)), undefined);
  });
}

test('a device that cannot be read is not taken for blank', async (t) => {
  const b = await deviceBench(t, 64 * MiB, { runner: { paths: { od: '/bin/false' } } });
  await assert.rejects(b.stage(), { code: 'UNAVAILABLE', message: /cannot be read/ });
  const c = await deviceBench(t, 64 * MiB, { runner: { paths: { od: '/bin/true' } } });
  await assert.rejects(c.stage(), { code: 'UNAVAILABLE', message: /cannot be read: it ends at byte 0/ });
  const d = await deviceBench(t, 64 * MiB, { runner: { paths: { blkid: '/nowhere/blkid' } } });
  await assert.rejects(d.stage(), { code: 'FAILED_PRECONDITION', message: /`blkid` was not found/ });
  const e = await deviceBench(t, 64 * MiB);
  await write(e.device, 5000, 'x');
  await assert.rejects(e.stage(), {
    code: 'FAILED_PRECONDITION',
    message: /has data that no tool knows at byte 4096;/,
  });
  for (const one of [b, c, d, e]) assert.ok(!programs(one).some((program) => program?.startsWith('mkfs')));
});

test('several readers do not format', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  await assert.rejects(b.stage(mode('MULTI_NODE_READER_ONLY')), { code: 'FAILED_PRECONDITION', message: /blank/ });
  host('mkfs.ext4', '-q', b.device);
  await b.stage(mode('MULTI_NODE_READER_ONLY'));
  assert.ok((await b.mountAt('stage'))?.options.includes('ro'));
  assert.ok((await b.mountAt('stage'))?.superOptions.includes('ro'));
});

test('an unknown file system is refused before anything is done', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  await assert.rejects(b.stage(as('../../evil')), { code: 'INVALID_ARGUMENT', message: /ext4/ });
  assert.deepEqual(b.commands, []);
});

test('the file system is checked before it is mounted where the configuration says so', async (t) => {
  const settings = {
    mount: { checkFilesystem: { ext4: { enabled: true, customOptions: ['-V'], customFilesystemOptions: ['-v'] } } },
  };
  const b = await deviceBench(t, 64 * MiB, { settings });
  host('mkfs.ext4', '-q', b.device);
  await b.stage();
  assert.ok(b.commands.includes(`fsck -V ${b.device} -- -v -f -p`));
  b.forget();
  await b.stage();
  assert.ok(!programs(b).includes('fsck'), 'never while it is mounted');
});

test('mount flags come from secrets too, but credentials do not', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  const request = {
    volumeId: 'v1',
    ...as('ext4'),
    context: { node_attach_driver: 'bind', path: b.device },
    publishContext: {},
  };
  const stage = (secrets: Record<string, string>) =>
    b.node.stage({ ...call, secrets }, { ...request, stagingPath: b.path('stage') });
  await assert.rejects(stage({ mount_flags: 'username=me,password=hidden' }), (error: Error) => {
    assert.match(error.message, /credentials/);
    return !error.message.includes('hidden');
  });
  await stage({ mount_flags: 'noatime', 'democratic-csi.org/mount_flags': 'nodiratime,nodev' });
  const options = (await b.mountAt('stage'))?.options ?? [];
  assert.ok(options.includes('nodev') && !options.includes('noatime'), options.join());
});

test('files of file systems without owners belong to the group of the request', async (t) => {
  for (const mountGroup of [true, false]) {
    const b = await deviceBench(t, 64 * MiB, { mountGroup });
    // Not every kernel can mount it; what matters is what it is asked for.
    await b.stage(as('exfat', { mountGroup: '4321' })).catch(() => {});
    const group = mountGroup ? '-o gid=4321 ' : '';
    assert.ok(b.commands.includes(`mount -t exfat ${group}${b.device} ${b.path('stage')}`), b.commands.join('\n'));
  }
});

test('mkfs that fails, and the same call again', async (t) => {
  const b = await deviceBench(t, 64 * MiB, { settings: { format: { ext4: { customOptions: ['--no-such-option'] } } } });
  await assert.rejects(b.stage(), { code: 'INTERNAL', message: /`mkfs.ext4` failed/ });
  assert.deepEqual(await readdir(b.root), ['vol']);
  const again = await bench(t, { context: { node_attach_driver: 'hostpath', path: b.device } });
  await again.stage();
  assert.equal((await again.mountAt('stage'))?.source, b.device);
});

for (const [first, second] of [
  ['SINGLE_NODE_WRITER', 'MULTI_NODE_READER_ONLY'],
  ['MULTI_NODE_READER_ONLY', 'SINGLE_NODE_WRITER'],
] as const) {
  test(`one device is staged at two paths: ${first} and then ${second}`, async (t) => {
    const b = await deviceBench(t, 64 * MiB);
    host('mkfs.ext4', '-q', b.device);
    const paths = { [first]: b.path('one'), [second]: b.path('two') };
    const writable = paths.SINGLE_NODE_WRITER as string;
    const readable = paths.MULTI_NODE_READER_ONLY as string;
    for (let round = 0; round < 2; round++) {
      await b.stage({ stagingPath: b.path('one'), ...mode(first) });
      await b.stage({ stagingPath: b.path('two'), ...mode(second) });
    }
    await b.publish('w', { stagingPath: writable, ...mode('SINGLE_NODE_WRITER') });
    await b.publish('r', { stagingPath: readable, ...mode('MULTI_NODE_READER_ONLY') });
    await writeFile(b.path('w/seen'), 'yes');
    assert.equal(await readFile(b.path('r/seen'), 'utf8'), 'yes');
    await assert.rejects(writeFile(b.path('r/x'), ''), { code: 'EROFS' });
    for (const name of ['w', 'r']) await b.unpublish(name);
    for (const path of [writable, readable]) await b.unstage(path);
    assert.deepEqual(await b.mounts(), []);
  });
}

test('without staging a device is mounted at the targets, read-only and writable', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  const direct = { stagingPath: undefined };
  await b.publish('w', direct);
  await b.publish('r', { ...direct, readonly: true });
  await b.publish('r', { ...direct, readonly: true });
  await writeFile(b.path('w/seen'), 'yes');
  assert.equal(await readFile(b.path('r/seen'), 'utf8'), 'yes');
  await assert.rejects(writeFile(b.path('r/x'), ''), { code: 'EROFS' });
  await assert.rejects(b.publish('w', { ...direct, readonly: true }), { code: 'ALREADY_EXISTS' });
  await b.unpublish('w');
  await b.unpublish('r');
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('a block volume is staged and published as the device itself', async (t) => {
  const b = await deviceBench(t, 8 * MiB);
  for (let round = 0; round < 2; round++) {
    await b.stage(block);
    await b.publish('pod/dev', block);
  }
  assert.deepEqual(programs(b), ['mount', 'mount']);
  const node = await stat(b.path('pod/dev'));
  assert.ok(node.isBlockDevice());
  assert.equal(node.rdev, (await stat(b.device)).rdev);
  for (const volumePath of [b.path('pod/dev'), b.path('stage'), b.path('stage/block_device')]) {
    const { usage, condition } = await b.node.stats(call, { volumeId: 'v1', volumePath });
    assert.deepEqual(usage, [{ unit: 'BYTES', total: 8 * MiB }]);
    assert.equal(condition?.abnormal, false);
  }
  await enlarge(b, 16 * MiB);
  const request = { volumeId: 'v1', volumePath: b.path('pod/dev'), capacity: { requiredBytes: 16 * MiB } };
  assert.deepEqual(await b.node.expand(call, request), { capacityBytes: 16 * MiB });
  await b.unpublish('pod/dev');
  await b.unstage();
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(await readdir(b.root), ['pod', 'vol']);
  assert.deepEqual(await readdir(b.path('pod')), []);
});

test('a block volume without staging, for a single writer', async (t) => {
  const b = await deviceBench(t, 8 * MiB);
  const single = {
    stagingPath: undefined,
    capability: { type: 'block', mode: 'SINGLE_NODE_SINGLE_WRITER' },
  } as const;
  await b.publish('dev', single);
  await b.publish('dev', single);
  await assert.rejects(b.publish('dev2', single), { code: 'FAILED_PRECONDITION' });
  await b.unpublish('dev');
  await assert.rejects(lstat(b.path('dev')), { code: 'ENOENT' });
});

test('a volume cannot be staged as both a block device and a file system at one path', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  await b.stage(block);
  await assert.rejects(b.stage(), { code: 'ALREADY_EXISTS', message: /as a block device/ });
  await assert.rejects(b.publish('t'), { code: 'FAILED_PRECONDITION', message: /not staged/ });
  await b.unstage();
  await b.stage();
  await assert.rejects(b.stage(block), { code: 'ALREADY_EXISTS', message: /as a mounted file system/ });
  await assert.rejects(b.publish('t', block), { code: 'FAILED_PRECONDITION', message: /not staged/ });
  await b.unstage();
});

test('a directory where a block volume should be published is refused', async (t) => {
  const b = await deviceBench(t, 8 * MiB);
  await b.stage(block);
  await mkdir(b.path('t'));
  await assert.rejects(b.publish('t', block), { code: 'FAILED_PRECONDITION', message: /is no file/ });
});

test('expanding a device whose new size is not seen yet is an error', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  await b.stage();
  const request = { volumeId: 'v1', volumePath: b.path('stage'), capacity: { requiredBytes: 128 * MiB } };
  await assert.rejects(b.node.expand(call, request), {
    code: 'FAILED_PRECONDITION',
    message: /64 MiB on this node, not 128 MiB/,
  });
});

test('a hostpath volume on a disk never touches the disk', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  host('mkfs.ext4', '-q', b.device, '32M');
  await mkdir(b.path('disk'));
  host('mount', b.device, b.path('disk'));
  await mkdir(b.path('disk/v'));
  const context = { node_attach_driver: 'hostpath', path: b.path('disk/v') };
  await b.stage({ context });
  const request = { volumeId: 'v1', volumePath: b.path('stage'), capacity: { requiredBytes: 64 * MiB } };
  assert.deepEqual(await b.node.expand(call, request), {});
  await b.unstage();
  assert.deepEqual(programs(b), ['mount', 'umount']);
  assert.ok((await bytesOf(b, 'disk')) < 40 * MiB);
});

test('a volume is detached when it is unstaged, which is refused while it is published', async (t) => {
  const released: Identity[] = [];
  const rescanned: string[] = [];
  const numberOf = (device = '') => host('stat', '-c', '%Hr:%Lr', device).trim();
  const attacher: MakeAttacher = (tools) => ({
    ...hostpath(tools),
    identityOf: ({ context }) => ({ device: numberOf(context.path) }),
    identify: async (device) => ({ device }),
    detach: async (_call, what) => void released.push(what),
    rescan: async (_call, device) => void rescanned.push(device),
  });
  const b = await deviceBench(t, 64 * MiB, { attachers: { bind: attacher } });
  const number = numberOf(b.device);
  await b.stage();
  await b.publish('t');
  await b.unpublish('t');
  assert.equal(released.length, 0, 'it is still staged');
  await b.publish('t');
  await b.node.expand(call, { volumeId: 'v1', volumePath: b.path('t'), capacity: {} });
  assert.deepEqual(rescanned, [number]);
  await assert.rejects(b.unstage(), { code: 'FAILED_PRECONDITION', message: /still mounted at .*\/t;/ });
  assert.deepEqual([await b.mounts(), released], [['stage', 't'], []]);
  await b.unpublish('t');
  await b.unstage();
  assert.deepEqual(released, [{ device: number }]);

  await b.stage(block);
  await b.unstage();
  assert.deepEqual(released[1], { device: number });

  await b.unpublish('t');
  await b.unstage();
  assert.equal(released.length, 2, 'nothing was there');
});

test('the condition tells a removed directory and a file system that became read-only', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('gone'));
  const context = { node_attach_driver: 'hostpath', path: b.path('gone') };
  await b.stage({ context });
  const good = await b.node.stats(call, { volumeId: 'v1', volumePath: b.path('stage') });
  assert.equal(good.condition?.abnormal, false);
  assert.deepEqual(
    good.usage.map((one) => one.unit),
    ['BYTES', 'INODES'],
  );
  for (const { total, used = 0, available = 0 } of good.usage) assert.ok(total > 0 && used + available <= total);
  host('rmdir', b.path('gone'));
  const bad = await b.node.stats(call, { volumeId: 'v1', volumePath: b.path('stage') });
  assert.equal(bad.condition?.abnormal, true);
  assert.match(bad.condition?.message ?? '', /gone was removed/);

  const d = await deviceBench(t, 64 * MiB);
  await d.stage();
  await d.publish('t');
  host('mount', '-o', 'remount,ro', d.path('stage'));
  const readonly = await d.node.stats(call, { volumeId: 'v1', volumePath: d.path('t') });
  assert.equal(readonly.condition?.abnormal, true);
  assert.match(readonly.condition?.message ?? '', /read-only/);
});

test('a file system that is being made is made to its end, though the call is cancelled meanwhile', async (t) => {
  const b = await deviceBench(t, 64 * MiB);
  const controller = new AbortController();
  const cancelled: typeof call = {
    ...call,
    signal: controller.signal,
    waitingFor(what, work) {
      const result = work();
      if (what.includes('mkfs')) controller.abort();
      return result;
    },
  };
  const context = { node_attach_driver: 'bind', path: b.device };
  const request = {
    volumeId: 'v1',
    stagingPath: b.path('stage'),
    capability: mountCapability,
    context,
    publishContext: {},
  };
  await assert.rejects(b.node.stage(cancelled, request), { code: 'CANCELLED' });
  b.forget();
  await b.stage();
  assert.ok(!programs(b).some((program) => program?.startsWith('mkfs')), 'it is there already');
});

test('statistics and expansion of what is not there are NOT_FOUND', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('plain'));
  for (const volumePath of ['some/path', '/no/such/path', b.path('plain'), '/', '', '/a/../b']) {
    const request = { volumeId: 'v1', volumePath, capacity: {} };
    await assert.rejects(b.node.stats(call, request), { code: 'NOT_FOUND' }, volumePath);
    await assert.rejects(b.node.expand(call, request), { code: 'NOT_FOUND' }, volumePath);
  }
});
