import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, stat, statfs, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { CallError } from '../../src/core/errors.ts';
import { failure, makeBench, makeFolder, mountImage, sh, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const mkfs = {
  ext4: ['mkfs.ext4', '-q', '-F'],
  xfs: ['mkfs.xfs', '-q', '-f', '-m', 'reflink=1'],
  btrfs: ['mkfs.btrfs', '-q', '-f'],
} as const;

/** Everything that a copy must keep, in `folder`. */
async function fill(folder: string): Promise<void> {
  const at = (name: string) => join(folder, name);
  await sh('chown', '1234:4321', folder);
  await sh('setfattr', '-n', 'user.volume', '-v', 'root of it', folder);
  await sh('setfacl', '-m', 'u:77:rwx', '-d', '-m', 'g:88:rx', folder);
  await sh('chmod', '3771', folder);
  await writeFile(at('plain'), 'plain');
  await sh('ln', at('plain'), at('hard link'));
  await sh('chmod', '6755', at('plain'));
  await sh('setfacl', '-m', 'u:99:r', at('plain'));
  await sh('setfattr', '-n', 'user.note', '-v', 'kept', at('plain'));
  await sh('setfattr', '-n', 'trusted.note', '-v', 'kept too', at('plain'));
  await sh('setcap', 'cap_net_raw+ep', at('plain')).catch(() => {});
  await writeFile(at('odd owner'), 'x');
  await sh('chown', '65533:2000000000', at('odd owner'));
  await symlink('/nowhere/at all', at('symlink'));
  await sh('chown', '-h', '7:7', at('symlink'));
  await sh('mkfifo', '-m', '640', at('fifo'));
  await sh('mknod', at('character'), 'c', '1', '3');
  await sh('mknod', at('block'), 'b', '7', '200');
  await sh('python3', '-c', 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])', at('socket'));
  await mkdir(at('deep/er/and deeper'), { recursive: true });
  await writeFile(at('deep/er/and deeper/new\nline'), 'x');
  await writeFile(at('.hidden'), 'x');
  await sh('touch', '-d', '2001-02-03 04:05:06.789', at('plain'), at('deep/er'), folder);
  await sh('truncate', '-s', '64M', at('holes'));
  await sh(
    'dd',
    'if=/dev/urandom',
    `of=${at('holes')}`,
    'bs=64k',
    'count=1',
    'seek=500',
    'conv=notrunc',
    'status=none',
  );
}

/** What a copy must keep, as text. */
async function describe(folder: string): Promise<string> {
  const inside = ['sh', '-c', 'cd "$0" && exec "$@"', folder] as const;
  const [shell, ...rest] = inside;
  const tree = await sh(shell, ...rest, 'find', '.', '-printf', '%P %y %m %U:%G %n %s %T@ %l\n');
  const acls = await sh(shell, ...rest, 'getfacl', '-RPn', '.');
  const attributes = await sh(shell, ...rest, 'getfattr', '-Rhd', '-m', '-', '-e', 'hex', '.');
  const sums = await sh(shell, ...rest, 'find', '.', '-type', 'f', '-exec', 'sha256sum', '{}', '+');
  const devices = await sh(
    shell,
    ...rest,
    'find',
    '.',
    '(',
    '-type',
    'c',
    '-o',
    '-type',
    'b',
    ')',
    '-exec',
    'stat',
    '-c',
    '%n %t:%T',
    '{}',
    '+',
  );
  const lines = (text: string) => text.split('\n').sort().join('\n');
  return [tree, sums, devices].map(lines).concat([acls, attributes].map(sortBlocks)).join('\n\n');
}

function sortBlocks(text: string): string {
  return text.split('\n\n').sort().join('\n\n');
}

/** Directory sizes and the like are the file system's own business. */
const comparable = (text: string) => text.replace(/^(.*? d \d+ \S+ \d+) \d+/gm, '$1');

for (const [name, command] of Object.entries(mkfs)) {
  test(`copies on ${name} keep everything`, async (t) => {
    const point = await mountImage(t, 400, command);
    const { base, call, volumes, snapshots } = await makeBench(t, { base: join(point, 'base') });
    await volumes.create(call, volumeSpec('v1'));
    await fill(join(base, 'v/v1'));
    const original = comparable(await describe(join(base, 'v/v1')));
    assert.match(original, /fifo p 640/);
    const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
    await volumes.create(call, volumeSpec('clone', { source: { type: 'volume', id: 'v1' } }));
    await volumes.create(call, volumeSpec('restored', { source: { type: 'snapshot', id } }));
    for (const copy of ['s/v1-s1', 'v/clone', 'v/restored']) {
      assert.equal(comparable(await describe(join(base, copy))), original, copy);
      const holes = await stat(join(base, copy, 'holes'));
      assert.ok(holes.blocks * 512 < 2 ** 20, `${copy} has ${holes.blocks} blocks`);
      assert.equal((await stat(join(base, copy, 'plain'))).ino, (await stat(join(base, copy, 'hard link'))).ino);
    }
    await volumes.delete(call, 'v1');
    for (const volume of ['clone', 'restored']) await volumes.delete(call, volume);
    await snapshots.delete(call, id);
    assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
    assert.deepEqual(await readdir(join(base, 'v')), []);
  });
}

test('a copy that was broken off and gone on with keeps everything, and nothing else', async (t) => {
  const point = await mountImage(t, 400, mkfs.ext4);
  const base = join(point, 'base');
  const stop = new AbortController();
  const real = createRunner();
  const first = await makeBench(t, {
    base,
    run: async (call, command) => {
      const output = await real(call, command);
      if (command.program !== 'cp') return output;
      // What a copy looks like in the middle.
      const target = command.args.at(-1) ?? '';
      await sh('truncate', '-s', '1000', join(target, 'holes'));
      await sh('rm', '-r', join(target, 'deep/er'));
      await writeFile(join(target, 'removed since'), 'x');
      // As large as its source, and as old but for a part of a second.
      await writeFile(join(target, '.hidden'), 'y');
      const { mtimeMs } = await stat(join(base, 'v/v1/.hidden'));
      await sh('touch', '-d', `@${Math.floor(mtimeMs / 1000)}.000000001`, join(target, '.hidden'));
      await sh('chown', '0:0', target);
      stop.abort(new CallError('UNAVAILABLE', 'the process stops'));
      throw stop.signal.reason;
    },
  });
  const { call, volumes } = first;
  await volumes.create(call, volumeSpec('v1'));
  await fill(join(base, 'v/v1'));
  const original = comparable(await describe(join(base, 'v/v1')));
  const clone = volumeSpec('clone', { source: { type: 'volume', id: 'v1' } });
  await assert.rejects(volumes.create({ ...call, signal: stop.signal }, clone), failure('UNAVAILABLE'));
  assert.equal((await readdir(join(base, '.switchboard/tmp'))).length, 1);
  const next = await makeBench(t, { base });
  await next.volumes.create(call, clone);
  assert.ok(!next.commands.some(({ program }) => program === 'cp'));
  assert.equal(comparable(await describe(join(base, 'v/clone'))), original);
  assert.equal((await stat(join(base, 'v/clone/plain'))).ino, (await stat(join(base, 'v/clone/hard link'))).ino);
  assert.ok((await stat(join(base, 'v/clone/holes'))).blocks * 512 < 2 ** 20);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

test('a copy that cannot be gone on with begins anew', async (t) => {
  const base = join(await makeFolder(t), 'base');
  const stop = new AbortController();
  const first = await makeBench(t, {
    base,
    run: async (_call, { program, args }) => {
      if (program !== 'cp') return { code: 0, stdout: '', stderr: '' };
      await writeFile(join(args.at(-1) ?? '', 'half'), 'half');
      stop.abort(new CallError('UNAVAILABLE', 'the process stops'));
      throw stop.signal.reason;
    },
  });
  const { call } = first;
  await first.volumes.create(call, volumeSpec('v1'));
  await writeFile(join(base, 'v/v1/file'), 'content');
  const clone = volumeSpec('clone', { source: { type: 'volume', id: 'v1' } });
  const broken = async () => {
    await assert.rejects(first.volumes.create({ ...call, signal: stop.signal }, clone), failure('UNAVAILABLE'));
    assert.equal((await readdir(join(base, '.switchboard/tmp'))).length, 1);
  };
  await broken();
  // Without rsync on the host.
  const next = await makeBench(t, { base, run: createRunner({ paths: { rsync: join(base, 'none') } }) });
  await next.volumes.create(call, clone);
  assert.deepEqual(await readdir(join(base, 'v/clone')), ['file']);
  await next.volumes.delete(call, 'clone');
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

for (const name of ['xfs', 'btrfs'] as const) {
  test(`copies on ${name} share their blocks`, async (t) => {
    const point = await mountImage(t, 400, mkfs[name]);
    const { base, call, volumes, snapshots } = await makeBench(t, { base: join(point, 'base') });
    await volumes.create(call, volumeSpec('v1'));
    await sh(
      'dd',
      'if=/dev/urandom',
      `of=${join(base, 'v/v1/data')}`,
      'bs=1M',
      'count=100',
      'conv=fsync',
      'status=none',
    );
    await sh('sync', '-f', point);
    const free = async () => {
      const { bavail, bsize } = await statfs(point);
      return bavail * bsize;
    };
    const before = await free();
    // Ten copies of 100 MiB would not fit on 400 MiB.
    for (let index = 0; index < 10; index++) await snapshots.create(call, snapshotSpec(`s${index}`, 'v1'));
    assert.ok(before - (await free()) < 20 * 2 ** 20, `${before} before, ${await free()} after`);
    assert.match(await sh('filefrag', '-v', join(base, 's/v1-s9/data')), /shared/);
  });
}

test('the kernel copies, or the server that the files are on', async (t) => {
  const root = await makeFolder(t);
  const cp = join(root, 'cp');
  const trace = join(root, 'trace');
  await writeFile(cp, `#!/bin/sh\nexec strace -f -o ${trace} -e trace=copy_file_range,ioctl cp "$@"\n`, {
    mode: 0o755,
  });
  const point = await mountImage(t, 64, mkfs.ext4);
  const { base, call, volumes, snapshots } = await makeBench(t, {
    base: join(point, 'base'),
    run: createRunner({ paths: { cp } }),
  });
  await volumes.create(call, volumeSpec('v1'));
  await sh('dd', 'if=/dev/urandom', `of=${join(base, 'v/v1/data')}`, 'bs=1M', 'count=4', 'status=none');
  await snapshots.create(call, snapshotSpec('s1', 'v1'));
  const calls = await readFile(trace, 'utf8');
  assert.match(calls, /FICLONE/);
  assert.match(calls, /copy_file_range\(.*\) = [1-9]/);
});

test('a copy that does not fit is RESOURCE_EXHAUSTED and leaves nothing', async (t) => {
  const point = await mountImage(t, 64, mkfs.ext4);
  const { base, call, volumes, snapshots } = await makeBench(t, { base: join(point, 'base') });
  await volumes.create(call, volumeSpec('v1'));
  await sh('dd', 'if=/dev/zero', `of=${join(base, 'v/v1/data')}`, 'bs=1M', 'count=40', 'status=none');
  const clone = volumeSpec('v2', { source: { type: 'volume', id: 'v1' } });
  await assert.rejects(
    snapshots.create(call, snapshotSpec('s1', 'v1')),
    failure('RESOURCE_EXHAUSTED', /No space left/),
  );
  await assert.rejects(volumes.create(call, clone), failure('RESOURCE_EXHAUSTED'));
  for (const folder of ['s', '.switchboard/s', '.switchboard/tmp'])
    assert.deepEqual(await readdir(join(base, folder)), []);
  await sh('rm', join(base, 'v/v1/data'));
  await volumes.create(call, clone);
});

test('files that disappear while a volume is copied are left out; other failures are failures', async (t) => {
  const base = join(await makeFolder(t), 'base');
  const real = createRunner();
  const says = (stderr: string, code = 1) =>
    makeBench(t, {
      base,
      run: async (call, command) => {
        const output = await real(call, command);
        return command.program === 'cp' ? { ...output, code, stderr } : output;
      },
    });
  const vanished = await says(
    "cp: cannot stat '/x/a': No such file or directory\ncp: cannot open '/x/b' for reading: No such file or directory\n",
  );
  const { call } = vanished;
  await vanished.volumes.create(call, volumeSpec('v1'));
  await vanished.snapshots.create(call, snapshotSpec('s1', 'v1'));
  const mixed = await says(
    "cp: cannot stat '/x/a': No such file or directory\ncp: error reading '/x/b': Input/output error\n",
  );
  await assert.rejects(
    mixed.snapshots.create(call, snapshotSpec('s2', 'v1')),
    failure('INTERNAL', /Input\/output error/),
  );
  const silent = await says('');
  await assert.rejects(silent.snapshots.create(call, snapshotSpec('s2', 'v1')), failure('INTERNAL'));
  const busybox = await says("cp: unrecognized option '--reflink=auto'\nBusyBox v1.36");
  await assert.rejects(
    busybox.snapshots.create(call, snapshotSpec('s2', 'v1')),
    failure('FAILED_PRECONDITION', /GNU coreutils/),
  );
  assert.deepEqual(await readdir(join(base, 's')), ['v1-s1']);
});

test('nested btrfs subvolumes are copied and removed with their volume', async (t) => {
  const point = await mountImage(t, 200, mkfs.btrfs);
  const { base, call, volumes } = await makeBench(t, { base: join(point, 'base') });
  await volumes.create(call, volumeSpec('v1'));
  await sh('btrfs', 'subvolume', 'create', join(base, 'v/v1/sub'));
  await mkdir(join(base, 'v/v1/sub/a/b'), { recursive: true });
  await writeFile(join(base, 'v/v1/sub/a/b/file'), 'x');
  await volumes.create(call, volumeSpec('v2', { source: { type: 'volume', id: 'v1' } }));
  assert.equal(await readFile(join(base, 'v/v2/sub/a/b/file'), 'utf8'), 'x');
  const other = join(point, 'other');
  await mkdir(other);
  await sh('mount', '--bind', join(base, 'v/v1'), other);
  await assert
    .rejects(volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION', /in use/))
    .finally(() => sh('umount', other));
  for (const name of ['v1', 'v2']) await volumes.delete(call, name);
  assert.deepEqual(await readdir(join(base, 'v')), []);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

test('snapshots on another file system than the rest are refused with the reason', async (t) => {
  const point = await mountImage(t, 16, mkfs.ext4);
  const base = await makeFolder(t);
  const { call, volumes, snapshots } = await makeBench(t, { base });
  await symlink(point, join(base, 's'));
  await volumes.create(call, volumeSpec('v1'));
  await assert.rejects(
    snapshots.create(call, snapshotSpec('s1', 'v1')),
    failure('FAILED_PRECONDITION', /another file system/),
  );
  await assert.rejects(snapshots.get(call, 'v1-s1'), failure('NOT_FOUND'));
  // One that was there before can be removed all the same.
  await mkdir(join(point, 'v1-old/deep'), { recursive: true });
  await snapshots.delete(call, 'v1-old');
  await assert.rejects(stat(join(point, 'v1-old')), { code: 'ENOENT' });
  await rename(join(base, 's'), join(base, 's.old'));
  await mkdir(join(base, 's'));
  await snapshots.create(call, snapshotSpec('s1', 'v1'));
});
