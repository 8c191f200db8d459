import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import type { AccessMode } from '../../src/core/volume.ts';
import { ensureMounted } from '../../src/node/ensure-mounted.ts';
import { parseMountTable, readMountTable } from '../../src/node/mount-table.ts';
import { wantBind } from '../../src/node/want-bind.ts';
import { bench, call, enterMountNamespace, host, mountCapability } from './node-support.ts';

enterMountNamespace(import.meta.url);

const mode = (of: AccessMode) => ({ capability: { ...mountCapability, mode: of } });

test('a volume is staged, published, unpublished and unstaged, with one command each', async (t) => {
  const b = await bench(t);
  await b.stage();
  assert.equal(await readFile(b.path('stage/data'), 'utf8'), 'precious');
  assert.deepEqual(b.commands, [`mount -o bind ${b.path('vol')} ${b.path('stage')}`]);
  b.forget();
  await b.publish('pods/1/target');
  await writeFile(b.path('pods/1/target/more'), 'x');
  assert.equal(await readFile(b.path('vol/more'), 'utf8'), 'x');
  assert.equal((await lstat(b.path('pods/1/target'))).isDirectory(), true);
  assert.equal(b.commands.length, 1);
  b.forget();
  await b.node.stats(call, { volumeId: 'v1', volumePath: b.path('pods/1/target') });
  assert.deepEqual(b.commands, []);
  await b.unpublish('pods/1/target');
  assert.deepEqual(b.commands, [`umount ${b.path('pods/1/target')}`]);
  b.forget();
  await b.unstage();
  assert.equal(b.commands.length, 1);
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(await readdir(b.root), ['pods', 'vol']);
  assert.deepEqual(await readdir(b.path('pods/1')), []);
  assert.deepEqual((await readdir(b.path('vol'))).sort(), ['data', 'more']);
});

test('every step can be repeated, and costs nothing then', async (t) => {
  const b = await bench(t);
  for (let round = 0; round < 2; round++) {
    await b.stage();
    await b.stage();
    await b.publish('t');
    await b.publish('t');
    assert.deepEqual(await b.mounts(), ['stage', 't']);
    assert.equal(b.commands.length, 2);
    await b.unpublish('t');
    await b.unpublish('t');
    await b.unstage();
    await b.unstage();
    assert.equal(b.commands.length, 4);
    b.forget();
  }
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('unknown volumes and paths are gone already', async (t) => {
  const b = await bench(t);
  await b.node.unpublish(call, { volumeId: 'never-was', targetPath: b.path('no/such/parent/target') });
  await b.node.unstage(call, { volumeId: 'never-was', stagingPath: b.path('nowhere/at/all') });
  await mkdir(b.path('made-by-the-orchestrator'));
  await b.unpublish('made-by-the-orchestrator');
  await assert.rejects(lstat(b.path('made-by-the-orchestrator')), { code: 'ENOENT' });
  assert.deepEqual(b.commands, []);
});

test('read-only is read-only, by the kernel', async (t) => {
  const b = await bench(t);
  await b.stage();
  await b.publish('ro', { readonly: true });
  await assert.rejects(writeFile(b.path('ro/x'), ''), { code: 'EROFS' });
  await b.publish('ro', { readonly: true });
  await b.publish('rw');
  await writeFile(b.path('rw/x'), '');
  await assert.rejects(b.publish('ro'), { code: 'ALREADY_EXISTS', message: /read-only/ });
  await assert.rejects(b.publish('rw', { readonly: true }), { code: 'ALREADY_EXISTS', message: /writable/ });
});

test('access modes that only read publish read-only', async (t) => {
  const b = await bench(t);
  await b.stage(mode('SINGLE_NODE_READER_ONLY'));
  await b.publish('one', mode('SINGLE_NODE_READER_ONLY'));
  await b.publish('many', mode('MULTI_NODE_READER_ONLY'));
  for (const name of ['one', 'many']) await assert.rejects(writeFile(b.path(`${name}/x`), ''), { code: 'EROFS' });
});

test('flags of a mount take effect, file system flags do not hurt, and others are ALREADY_EXISTS', async (t) => {
  const b = await bench(t);
  await b.stage();
  const flags = (...mountFlags: string[]) => ({ capability: { ...mountCapability, mountFlags } });
  await b.publish('t', flags('noexec,nosuid', 'nodev', 'noatime', 'vers=4.1', 'defaults'));
  const options = (await b.mountAt('t'))?.options ?? [];
  for (const option of ['rw', 'noexec', 'nosuid', 'nodev', 'noatime']) assert.ok(options.includes(option), option);
  await b.publish('t', flags('nodev', 'noexec', 'noatime', 'nosuid'));
  await assert.rejects(b.publish('t', flags('noexec')), { code: 'ALREADY_EXISTS', message: /it has nosuid/ });
  await assert.rejects(b.publish('t'), { code: 'ALREADY_EXISTS' });
  await assert.rejects(b.publish('t', flags('noexec', 'nosuid', 'nodev', 'ro')), { code: 'ALREADY_EXISTS' });
  for (const flag of ['remount', 'rbind', 'loop=/x', 'make-shared', 'X-mount.mkdir', 'a\nb']) {
    await assert.rejects(b.publish('other', flags(flag)), { code: 'INVALID_ARGUMENT' }, flag);
  }
});

test('protections of the underlying mount are kept by a mount with flags of its own', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('disk'));
  host('mount', '-t', 'tmpfs', '-o', 'nosuid,nodev,noexec,noatime', 'disk', b.path('disk'));
  await mkdir(b.path('disk/v'));
  const context = { node_attach_driver: 'hostpath', path: b.path('disk/v') };
  await b.stage({ context });
  await b.publish('t', { context, readonly: true });
  const options = (await b.mountAt('t'))?.options ?? [];
  for (const option of ['ro', 'nosuid', 'nodev', 'noexec', 'noatime']) assert.ok(options.includes(option), option);
  await b.publish('t', { context, readonly: true });
});

test('the configured mount flags are used', async (t) => {
  const b = await bench(t, { settings: { mount: { mount_flags: ['nosuid', 'nodev'] } } });
  await b.stage();
  await b.publish('t');
  assert.ok((await b.mountAt('t'))?.options.includes('nosuid'));
  assert.ok((await b.mountAt('stage'))?.options.includes('nodev'));
});

test('one volume is staged at two paths, writable and read-only', async (t) => {
  const b = await bench(t);
  await b.stage({ stagingPath: b.path('rw-stage') });
  await b.stage({ stagingPath: b.path('ro-stage'), ...mode('SINGLE_NODE_READER_ONLY') });
  await b.publish('w', { stagingPath: b.path('rw-stage') });
  await b.publish('r', { stagingPath: b.path('ro-stage'), ...mode('SINGLE_NODE_READER_ONLY'), readonly: true });
  await writeFile(b.path('w/seen'), 'yes');
  assert.equal(await readFile(b.path('r/seen'), 'utf8'), 'yes');
  await b.unpublish('w');
  await b.unstage(b.path('rw-stage'));
  assert.equal(await readFile(b.path('r/seen'), 'utf8'), 'yes');
  await b.unpublish('r');
  await b.unstage(b.path('ro-stage'));
  assert.deepEqual(await b.mounts(), []);
});

test('without staging the volume is mounted at the target', async (t) => {
  const b = await bench(t);
  await b.publish('t', { stagingPath: undefined });
  await b.publish('t', { stagingPath: undefined });
  await b.publish('r', { stagingPath: '', readonly: true });
  assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');
  await assert.rejects(writeFile(b.path('r/x'), ''), { code: 'EROFS' });
  assert.equal(b.commands.length, 2);
  await b.unpublish('t');
  await b.unpublish('r');
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('publishing from a staging path where nothing is staged fails and leaves nothing', async (t) => {
  const b = await bench(t);
  await assert.rejects(b.publish('t'), { code: 'FAILED_PRECONDITION', message: /not staged at/ });
  await mkdir(b.path('stage'));
  await assert.rejects(b.publish('t'), { code: 'FAILED_PRECONDITION', message: /not staged at/ });
  assert.deepEqual(await readdir(b.root), ['stage', 'vol']);
});

test('a place where something else is mounted is left alone', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('other'));
  await mkdir(b.path('stage'));
  host('mount', '--bind', b.path('other'), b.path('stage'));
  await assert.rejects(b.stage(), { code: 'FAILED_PRECONDITION', message: /occupied by a mount of .*other/ });
  host('umount', b.path('stage'));
  await b.stage();
  await mkdir(b.path('t'));
  host('mount', '-t', 'tmpfs', 'tmp', b.path('t'));
  await assert.rejects(b.publish('t'), { code: 'FAILED_PRECONDITION', message: /occupied by a mount of tmp,/ });
  assert.equal((await b.mountAt('t'))?.source, 'tmp');
});

test('a volume whose directory is gone cannot be staged or published, and its old mounts are detached', async (t) => {
  const b = await bench(t);
  await b.stage();
  await b.publish('t');
  await rm(b.path('vol'), { recursive: true });
  await assert.rejects(b.stage(), { code: 'NOT_FOUND', message: /vol does not exist/ });
  await assert.rejects(b.publish('t'), { code: 'FAILED_PRECONDITION', message: /dead: .*was removed/ });
  await assert.rejects(b.publish('t2', { stagingPath: undefined }), { code: 'NOT_FOUND' });

  // Made anew, as a restore would: what is mounted shows the old directory.
  await mkdir(b.path('vol'));
  await writeFile(b.path('vol/data'), 'restored');
  await b.stage();
  await b.publish('t');
  assert.equal(await readFile(b.path('t/data'), 'utf8'), 'restored');
  assert.deepEqual(await b.mounts(), ['stage', 't']);
});

test('everything stacked on a target comes off', async (t) => {
  const b = await bench(t);
  await b.stage();
  await b.publish('t');
  host('mount', '--bind', b.path('stage'), b.path('t'));
  host('mount', '-t', 'tmpfs', 'tmp', b.path('t'));
  await b.unpublish('t');
  assert.deepEqual(await b.mounts(), ['stage']);
  await assert.rejects(lstat(b.path('t')), { code: 'ENOENT' });
});

test('a target in use is an error that names the user, and stays', async (t) => {
  const b = await bench(t);
  await b.stage();
  await b.publish('t');
  const user = spawn('sleep', ['600'], { cwd: b.path('t') });
  t.after(() => user.kill('SIGKILL'));
  await once(user, 'spawn');
  await assert.rejects(b.unpublish('t'), {
    code: 'FAILED_PRECONDITION',
    message: new RegExp(`t is in use by process ${user.pid} \\(sleep\\)`),
  });
  assert.deepEqual(await b.mounts(), ['stage', 't']);
  user.kill('SIGKILL');
  await once(user, 'exit');
  await b.unpublish('t');
  assert.deepEqual(await b.mounts(), ['stage']);
});

test('a target that is busy for a moment is waited for', async (t) => {
  const b = await bench(t);
  await b.stage();
  await b.publish('t');
  const user = spawn('sleep', ['600'], { cwd: b.path('t') });
  await once(user, 'spawn');
  const context = {
    ...call,
    waitingFor: async <T>(what: string, work: () => Promise<T>) => {
      if (what.startsWith('users of')) {
        user.kill('SIGKILL');
        await once(user, 'exit');
      }
      return await work();
    },
  };
  await b.node.unpublish(context, { volumeId: 'v1', targetPath: b.path('t') });
  assert.deepEqual(await b.mounts(), ['stage']);
});

test('files at a target that is not mounted are never removed', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('t'));
  await writeFile(b.path('t/mine'), 'precious');
  await assert.rejects(b.unpublish('t'), { code: 'FAILED_PRECONDITION', message: /not mounted, but not empty/ });
  assert.equal(await readFile(b.path('t/mine'), 'utf8'), 'precious');
  await writeFile(b.path('file'), 'precious');
  await assert.rejects(b.unpublish('file'), { code: 'FAILED_PRECONDITION' });
  await symlink(b.path('vol'), b.path('link'));
  await assert.rejects(b.unpublish('link'), { code: 'FAILED_PRECONDITION' });
  await assert.rejects(b.publish('link', { stagingPath: undefined }), { code: 'FAILED_PRECONDITION' });
  assert.equal(await readFile(b.path('vol/data'), 'utf8'), 'precious');
});

test('files at a staging path do not keep a volume from being unstaged', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('stage'));
  await writeFile(b.path('stage/mine'), 'precious');
  await b.stage();
  await b.unstage();
  assert.deepEqual(await b.mounts(), []);
  assert.equal(await readFile(b.path('stage/mine'), 'utf8'), 'precious');
});

test('of 50 publications of a single-writer volume at different targets exactly one wins', async (t) => {
  const b = await bench(t);
  const single = mode('SINGLE_NODE_SINGLE_WRITER');
  await b.stage(single);
  const targets = Array.from({ length: 50 }, (_, index) => `t${index}`);
  const results = await Promise.allSettled(targets.map((target) => b.publish(target, single)));
  const won = targets.filter((_, index) => results[index]?.status === 'fulfilled');
  assert.equal(won.length, 1);
  for (const result of results) {
    if (result.status === 'rejected') assert.equal(result.reason.code, 'FAILED_PRECONDITION');
  }
  const [winner] = won as [string];
  assert.deepEqual(await b.mounts(), ['stage', winner]);
  await b.publish(winner, single);
  await b.unpublish(winner);
  await b.publish('t50', single);
  await assert.rejects(b.publish(winner, single), {
    code: 'FAILED_PRECONDITION',
    message: /published at .*\/t50 already/,
  });
});

test('a single-writer volume is recognised without staging, and where propagation shows it twice', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('kubelet'));
  await mkdir(b.path('host'));
  host('mount', '-t', 'tmpfs', 'tmp', b.path('kubelet'));
  host('mount', '--make-shared', b.path('kubelet'));
  host('mount', '--bind', b.path('kubelet'), b.path('host'));
  const single = { ...mode('SINGLE_NODE_SINGLE_WRITER'), stagingPath: undefined };
  await b.publish('kubelet/t', single);
  assert.deepEqual([...(await b.mounts())].sort(), ['host', 'host/t', 'kubelet', 'kubelet/t']);
  await b.publish('kubelet/t', single);
  await b.publish('host/t', single);
  await assert.rejects(b.publish('kubelet/u', single), { code: 'FAILED_PRECONDITION' });
  await b.unpublish('kubelet/t');
  assert.deepEqual([...(await b.mounts())].sort(), ['host', 'kubelet']);
});

test('a volume that is a whole mount of its own may have a single writer', async (t) => {
  const b = await bench(t);
  host('mount', '-t', 'tmpfs', 'disk', b.path('vol'));
  const single = { ...mode('SINGLE_NODE_SINGLE_WRITER'), stagingPath: undefined };
  await b.publish('t', single);
  await assert.rejects(b.publish('u', single), { code: 'FAILED_PRECONDITION' });
});

test('paths with spaces, newlines, backslashes and other alphabets', async (t) => {
  const b = await bench(t);
  for (const name of [
    'a b',
    'new\nline',
    'tab\there',
    'back\\slash\\040',
    '-o bind',
    'größe-日本',
    'c,d',
    '#x',
    '"q"',
  ]) {
    await mkdir(b.path(`vol-${name}`));
    const stagingPath = b.path(`stage ${name}`);
    const context = { node_attach_driver: 'hostpath', path: b.path(`vol-${name}`) };
    for (let round = 0; round < 2; round++) {
      await b.stage({ stagingPath, context });
      await b.publish(name, { stagingPath, context });
    }
    assert.equal((await b.mounts()).length, 2, name);
    await b.unpublish(name);
    await b.unstage(stagingPath);
    assert.deepEqual(await b.mounts(), [], name);
  }
});

test('a mount is found among hundreds of others', async (t) => {
  const b = await bench(t);
  await b.stage();
  const many = b.path('many');
  host(
    'sh',
    '-c',
    'mkdir "$1" && mount -t tmpfs t "$1" && for i in $(seq 300); do mkdir "$1/$i" && mount -B "$2" "$1/$i"; done',
    'sh',
    many,
    b.path('vol'),
  );
  await b.publish('t');
  await b.publish('t');
  assert.equal((await b.mounts()).length, 303);
  await b.unpublish('t');
  assert.equal((await b.mounts()).length, 302);
  assert.equal(b.commands.length, 3);
});

test('paths are found through symbolic links of their parents', async (t) => {
  const b = await bench(t);
  await mkdir(b.path('real'));
  await symlink(b.path('real'), b.path('link'));
  await symlink(b.path('vol'), b.path('vol-link'));
  const context = { node_attach_driver: 'hostpath', path: b.path('vol-link') };
  for (let round = 0; round < 2; round++) {
    await b.stage({ stagingPath: b.path('link/stage'), context });
    await b.publish('link/t', { stagingPath: b.path('link/stage') });
    assert.deepEqual(await b.mounts(), ['real/stage', 'real/t']);
    const { usage } = await b.node.stats(call, { volumeId: 'v1', volumePath: b.path('link/t') });
    assert.equal(usage.length, 2);
  }
  await b.unpublish('link/t');
  await b.unstage(b.path('link/stage'));
  assert.deepEqual(await b.mounts(), []);
});

test('paths that are not absolute, climb, or are the root are refused', async (t) => {
  const b = await bench(t);
  for (const path of ['relative', '/', '//', '/a/../b', '/a/./b', '/a\0b', `/${'x'.repeat(5000)}`]) {
    const code = { code: 'INVALID_ARGUMENT' };
    await assert.rejects(b.node.unpublish(call, { volumeId: 'v1', targetPath: path }), code, path);
    await assert.rejects(b.unstage(path), code, path);
    await assert.rejects(b.stage({ stagingPath: path }), code, path);
    await assert.rejects(b.publish('t', { targetPath: path }), code, path);
    await assert.rejects(b.publish('t', { stagingPath: path }), code, path);
  }
  await assert.rejects(b.stage({ context: { node_attach_driver: 'hostpath', path: '/etc/../etc' } }), {
    code: 'INVALID_ARGUMENT',
  });
});

test('a context that says nothing useful is refused', async (t) => {
  const b = await bench(t);
  await assert.rejects(b.stage({ context: {} }), {
    code: 'INVALID_ARGUMENT',
    message: /node_attach_driver is missing/,
  });
  await assert.rejects(b.stage({ context: { node_attach_driver: 'toString' } }), {
    code: 'INVALID_ARGUMENT',
    message: /"toString" is not known .*hostpath/,
  });
  await assert.rejects(b.stage({ context: { node_attach_driver: 'hostpath' } }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(b.stage({ capability: { ...mountCapability, fsType: 'ext4' } }), { code: 'INVALID_ARGUMENT' });
  await b.stage({ capability: { ...mountCapability, fsType: 'none' } });
  await assert.rejects(b.publish('t', { stagingPath: undefined, capability: { type: 'block', mode: 'UNKNOWN' } }), {
    code: 'INVALID_ARGUMENT',
    message: /directory/,
  });
  await writeFile(b.path('file'), '');
  const context = { node_attach_driver: 'hostpath', path: b.path('file') };
  await assert.rejects(b.stage({ context }), { code: 'FAILED_PRECONDITION' });
});

test('a missing host program is said, and nothing is left', async (t) => {
  const b = await bench(t, { runner: { paths: { mount: '/nowhere/mount' } } });
  await assert.rejects(b.stage(), {
    code: 'FAILED_PRECONDITION',
    message: /`mount` was not found \(searched \/nowhere\/mount\)/,
  });
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('a mount that hangs is ended by its time limit, and nothing is left', async (t) => {
  const directory = await bench(t);
  const script = join(directory.root, 'hanging-mount');
  await writeFile(script, '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 60; done\n');
  await chmod(script, 0o755);
  const b = await bench(t, {
    runner: { paths: { mount: script }, killGraceMs: 20 },
    limits: { ...defaultTimeLimits, mount: 200 },
  });
  await assert.rejects(b.stage(), { code: 'DEADLINE_EXCEEDED', message: /`mount` did not finish within 0.2 s/ });
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('a cancelled call ends its mount and the next call completes it', async (t) => {
  const b = await bench(t);
  const controller = new AbortController();
  const context = {
    ...call,
    signal: controller.signal,
    waitingFor: <T>(_what: string, work: () => Promise<T>) => {
      const running = work();
      controller.abort();
      return running;
    },
  };
  const request = { volumeId: 'v1', stagingPath: b.path('stage'), capability: mountCapability, publishContext: {} };
  const volume = { node_attach_driver: 'hostpath', path: b.path('vol') };
  await assert.rejects(b.node.stage(context, { ...request, context: volume }), { code: 'CANCELLED' });
  await b.stage();
  assert.deepEqual(await b.mounts(), ['stage']);
});

test('a mount program that leaves out read-only is corrected', async (t) => {
  const helper = await bench(t);
  const script = join(helper.root, 'forgetful-mount');
  await writeFile(
    script,
    '#!/bin/sh\ncase "$2" in remount*) exec mount "$@";; *) exec mount --bind "$3" "$4";; esac\n',
  );
  await chmod(script, 0o755);
  const b = await bench(t, { runner: { paths: { mount: script } } });
  await b.stage();
  await b.publish('t', { readonly: true });
  await assert.rejects(writeFile(b.path('t/x'), ''), { code: 'EROFS' });

  await writeFile(script, '#!/bin/sh\ncase "$2" in remount*) exit 0;; *) exec mount --bind "$3" "$4";; esac\n');
  await assert.rejects(b.publish('u', { readonly: true }), { code: 'FAILED_PRECONDITION', message: /writable/ });
  assert.deepEqual(await b.mounts(), ['stage', 't']);
  await assert.rejects(lstat(b.path('u')), { code: 'ENOENT' });
});

test('a dead server is detached', async (t) => {
  // A FUSE-like stand-in cannot be had without its daemon: the child that looks at the mount is what says that it is dead.
  const b = await bench(t);
  await mkdir(b.path('t'));
  host('mount', '-t', 'tmpfs', 'nas1:/gone', b.path('t'));
  const asNfs = async () => {
    const text = await readFile('/proc/self/mountinfo', 'utf8');
    return parseMountTable(text.replace(/ - tmpfs nas1/g, ' - nfs4 nas1'));
  };
  const ran: string[] = [];
  const run = createRunner();
  const tools = {
    limits: { ...defaultTimeLimits, mount: 300 },
    settings: {},
    readTable: asNfs,
    run: (context: Parameters<typeof run>[0], command: Parameters<typeof run>[1]) => {
      ran.push([command.program, ...command.args].join(' '));
      if (command.program !== 'stat') return run(context, command);
      return run(context, { program: 'sleep', args: ['600'], timeoutMs: command.timeoutMs });
    },
  };
  const table = await asNfs();
  const wanted = wantBind(tools, table, b.path('vol'), 'directory', { readonly: false, flags: [] });
  await ensureMounted(call, tools, table, wanted, b.path('t'));
  assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');
  assert.equal((await readMountTable()).stackAt(b.path('t')).length, 1);
  assert.ok(ran.includes(`umount -l -i -c ${b.path('t')}`), ran.join('\n'));
});

test('node info is what it was told', async (t) => {
  const b = await bench(t, { info: { nodeId: 'n7', topology: { zone: 'a' } }, mountGroup: true });
  assert.deepEqual(await b.node.info(call), { nodeId: 'n7', topology: { zone: 'a' } });
  assert.deepEqual([...b.node.extra], ['VOLUME_CONDITION', 'VOLUME_MOUNT_GROUP']);
  assert.deepEqual([...(await bench(t)).node.extra], ['VOLUME_CONDITION']);
});
