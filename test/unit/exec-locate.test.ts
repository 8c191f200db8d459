import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { defaultHostSettings, type HostSettings } from '../../src/backends/exec/host-settings.ts';
import { type FoundThere, type Located, locate } from '../../src/backends/exec/locate.ts';
import { needsHostsHelper } from '../../src/backends/exec/mount-helper.ts';
import { oldestProcess } from '../../src/backends/exec/process-id.ts';
import { type FakeRoot, makeRoot } from './exec-fake-root.ts';

/** Nowhere on the machine that runs the tests, so that everything comes from the root that is made up. */
const tools = '/made-up/bin';

type More = Partial<HostSettings> & { readonly inRoot?: 'own' | 'host' };

async function located(root: string, program: string, { inRoot, ...more }: More = {}): Promise<Located> {
  const settings = { ...defaultHostSettings, root, searchPath: [tools], ...more };
  return locate(program, { settings, path: '', inRoot });
}

async function start(root: string, program: string, more: More = {}): Promise<FoundThere> {
  const answer = await located(root, program, more);
  if (answer.strategy === undefined) assert.fail(answer.passed.join('; '));
  return answer;
}

const glibc = { interpreter: '/lib64/ld-linux-x86-64.so.2', needed: ['libc.so.6'] };

/** Everything below /usr, with links that lead there, and the directories of libraries named by files that are included. */
const debian: FakeRoot = {
  'etc/ld.so.conf': '# comment\ninclude /etc/ld.so.conf.d/*.conf\n',
  'etc/ld.so.conf.d/local.conf': '/opt/libs # more\n',
  'etc/ld.so.conf.d/ignored.txt': '/nowhere',
  'etc/mke2fs.conf': '',
  bin: '-> usr/bin',
  lib: '-> usr/lib',
  lib64: '-> usr/lib64',
  'usr/bin/sh': {},
  'usr/lib64/ld-linux-x86-64.so.2': '-> ../lib/x86_64-linux-gnu/ld.so',
  'usr/lib/x86_64-linux-gnu/ld.so': {},
  'usr/lib/x86_64-linux-gnu/libc.so.6': { needed: ['ld-linux-x86-64.so.2'] },
  'usr/lib/i386-linux-gnu/libc.so.6': { bits: 32, processor: 3 },
  'opt/libs/libmount.so.1': { needed: ['libblkid.so.1', 'libc.so.6'] },
  'opt/libs/libblkid.so.1': '-> libblkid.so.1.2',
  'opt/libs/libblkid.so.1.2': {},
  'made-up/bin/mount': { ...glibc, needed: ['libmount.so.1', 'libc.so.6'] },
  'made-up/bin/mkfs.ext4': '-> mke2fs',
  'made-up/bin/mke2fs': glibc,
  'made-up/bin/chroot': glibc,
  'made-up/bin/iscsiadm': glibc,
  'made-up/bin/script': '#!/bin/sh\n',
  'made-up/bin/mount.nfs': glibc,
  'made-up/bin/mount.fuse': glibc,
  'made-up/bin/static': {},
  'made-up/bin/lost': { ...glibc, needed: ['libnone.so.1', 'libc.so.6'] },
  'made-up/bin/alien': { ...glibc, interpreter: '/lib/ld-alien.so.1' },
  'made-up/bin/data': 'no program',
};

const loaderOf = (root: string) => [`${root}/usr/lib/x86_64-linux-gnu/ld.so`, '--library-path'];

test('a program that needs only its libraries is run in this root, by the loader of the host', async (t) => {
  const root = await makeRoot(t, debian);
  const found = await start(root, 'mount');
  const gnu = `${root}/usr/lib/x86_64-linux-gnu`;
  const path = `${root}/opt/libs:${gnu}:${root}/usr/lib/i386-linux-gnu:${root}/usr/lib64:${root}/usr/lib`;
  assert.equal(found.strategy, 'loader');
  assert.equal(found.place, undefined);
  assert.deepEqual(found.start.argv, [...loaderOf(root), path, `${root}${tools}/mount`]);
  assert.deepEqual(found.passed, [`not in ${tools}`]);
});

test('libraries of another processor are passed over', async (t) => {
  const root = await makeRoot(t, debian);
  const [, , path = ''] = (await start(root, 'mke2fs')).start.argv;
  assert.ok(path.startsWith(`${root}/usr/lib/x86_64-linux-gnu:`), path);
});

test('a program of many names is started by the one that is meant, with the settings of the host', async (t) => {
  const root = await makeRoot(t, debian);
  const { start: made, file } = await start(root, 'mkfs.ext4');
  assert.equal(made.argv.at(-1), `${root}${tools}/mkfs.ext4`);
  assert.equal(file, `${root}${tools}/mke2fs`);
  assert.deepEqual(made.env, { MKE2FS_CONFIG: `${root}/etc/mke2fs.conf` });
});

test('what has to do with daemons of the host, and scripts, are run in its root by its own chroot', async (t) => {
  const root = await makeRoot(t, debian);
  for (const program of ['iscsiadm', 'script']) {
    const found = await start(root, program);
    assert.equal(found.strategy, 'chroot');
    assert.deepEqual(found.start.argv.slice(0, 2), loaderOf(root));
    assert.deepEqual(found.start.argv.slice(3), [`${root}${tools}/chroot`, root, `${tools}/${program}`]);
    assert.deepEqual(found.place, { way: 'chroot', root });
  }
});

test('a chroot of this root is used where there is one, but for the loader strategy', async (t) => {
  const root = await makeRoot(t, debian);
  const searchPath = [tools, '/usr/sbin', '/usr/bin', '/bin'];
  for (const strategy of ['auto', 'chroot'] as const) {
    const { start: made } = await start(root, 'iscsiadm', { strategy, searchPath });
    assert.match(made.argv[0] ?? '', /^\/usr\/s?bin\/chroot$/);
    assert.deepEqual(made.argv.slice(1), [root, `${tools}/iscsiadm`]);
  }
  const { start: made } = await start(root, 'iscsiadm', { strategy: 'loader', searchPath });
  assert.deepEqual(made.argv.slice(0, 2), loaderOf(root));
});

test('chroot takes every program to the root of the host', async (t) => {
  const root = await makeRoot(t, debian);
  const found = await start(root, 'mount', { strategy: 'chroot' });
  assert.deepEqual(found.start.argv.slice(3), [`${root}${tools}/chroot`, root, `${tools}/mount`]);
  assert.equal((await start(root, 'mount', { strategy: 'chroot', inRoot: 'own' })).strategy, 'loader');
});

test('a static program takes no loader', async (t) => {
  const root = await makeRoot(t, debian);
  const { start: made } = await start(root, 'static');
  assert.deepEqual([made.argv, made.argv0], [[`${root}${tools}/static`], 'static']);
});

test('a program whose libraries or loader are missing is run in the root of the host, and the reason is told', async (t) => {
  const root = await makeRoot(t, debian);
  const lost = await start(root, 'lost');
  assert.equal(lost.strategy, 'chroot');
  assert.equal(lost.passed.at(-1), `its libraries libnone.so.1 were not found in ${root}`);
  assert.equal((await start(root, 'alien')).passed.at(-1), `its dynamic loader ${root}/lib/ld-alien.so.1 is missing`);
});

test('what is not there is told with every place that was looked at', async (t) => {
  const root = await makeRoot(t, debian);
  for (const program of ['nothing', 'data']) {
    assert.deepEqual(await located(root, program), {
      program,
      strategy: undefined,
      passed: [`not in ${tools}`, `not in ${tools} of ${root}`],
    });
  }
  const none = await located(join(root, 'none'), 'mount', { pid: process.pid });
  assert.deepEqual(none.passed.slice(1), [
    `there is no directory ${root}/none`,
    `process ${process.pid} is in this very mount namespace`,
  ]);
  const noRoot = await located(join(root, 'opt'), 'mount', { strategy: 'chroot' });
  assert.deepEqual(noRoot.passed, [`${root}/opt is not the root directory of a host: it has no /etc or no /bin`]);
});

test('direct is what this root has, by its name', async (t) => {
  const root = await makeRoot(t, debian);
  const searchPath = ['/usr/bin', '/bin'];
  for (const strategy of ['auto', 'direct'] as const) {
    const found = await start(root, 'mount', { strategy, searchPath });
    assert.deepEqual([found.strategy, found.start.argv], ['direct', ['mount']]);
    assert.match(found.file, /^\/(usr\/)?bin\/mount$/);
  }
  assert.equal((await located(root, 'mount', { strategy: 'direct' })).strategy, undefined);
});

test('single programs have paths, strategies and prefixes of their own', async (t) => {
  const root = await makeRoot(t, { ...debian, 'opt/tools/mount': glibc });
  const programs: HostSettings['programs'] = {
    mount: { path: '/opt/tools/mount' },
    'mkfs.ext4': { strategy: 'chroot', prefix: ['nice', '-n', '5'] },
    mke2fs: { prefix: ['ionice'] },
    iscsiadm: { path: '/none' },
    static: { strategy: 'direct' },
  };
  assert.equal((await start(root, 'mount', { programs })).start.argv.at(-1), `${root}/opt/tools/mount`);
  const made = await start(root, 'mkfs.ext4', { programs });
  assert.deepEqual(made.start.argv.slice(4), [root, 'nice', '-n', '5', `${tools}/mkfs.ext4`]);
  const prefixed = await start(root, 'mke2fs', { programs });
  assert.deepEqual(
    prefixed.start.argv.slice(4),
    [root, 'ionice', `${tools}/mke2fs`],
    'a prefix is a program of the host',
  );
  const none = await located(root, 'iscsiadm', { programs });
  assert.deepEqual(none.passed, ['there is no program /none here', `there is no program /none in ${root}`]);
  assert.deepEqual((await located(root, 'static', { programs })).passed, [`not in ${tools}`]);
});

test('an aarch64 host', async (t) => {
  const aarch64 = { processor: 183 };
  const root = await makeRoot(t, {
    'etc/hosts': '',
    'usr/bin/sh': aarch64,
    'lib/ld-linux-aarch64.so.1': aarch64,
    'usr/lib64/libc.so.6': aarch64,
    'made-up/bin/mount': { ...aarch64, interpreter: '/lib/ld-linux-aarch64.so.1', needed: ['libc.so.6'] },
  });
  const { start: made } = await start(root, 'mount');
  const path = `${root}/usr/lib64:${root}/lib`;
  assert.deepEqual(made.argv, [`${root}/lib/ld-linux-aarch64.so.1`, '--library-path', path, `${root}${tools}/mount`]);
});

test('an Alpine host: musl is loader and C library, and busybox is every program by an absolute link', async (t) => {
  const interpreter = '/lib/ld-musl-x86_64.so.1';
  const root = await makeRoot(t, {
    'etc/ld-musl-x86_64.path': '/lib:/usr/lib\n/opt/lib\n',
    'lib/ld-musl-x86_64.so.1': {},
    'opt/lib/libmount.so.1': { needed: ['libc.musl-x86_64.so.1'] },
    'bin/busybox': { interpreter, needed: ['libc.musl-x86_64.so.1'] },
    'made-up/bin/chroot': '-> /bin/busybox',
    'made-up/bin/umount': '-> /bin/busybox',
    'made-up/bin/mount': { interpreter, needed: ['libmount.so.1', 'libc.musl-x86_64.so.1'] },
    'made-up/bin/multipath': { interpreter },
  });
  const mount = await start(root, 'mount');
  assert.deepEqual(mount.start.argv.slice(0, 3), [
    `${root}/lib/ld-musl-x86_64.so.1`,
    '--library-path',
    `${root}/opt/lib:${root}/lib`,
  ]);
  const umount = await start(root, 'umount');
  assert.deepEqual(umount.start.argv.slice(3), ['--argv0', 'umount', `${root}/bin/busybox`]);
  const multipath = await start(root, 'multipath');
  const entered = ['--argv0', 'chroot', `${root}/bin/busybox`, root, `${tools}/multipath`];
  assert.deepEqual(multipath.start.argv.slice(3), entered);
});

test('a NixOS host: absolute links, a loader and libraries in the store', async (t) => {
  const store = '/nix/store';
  const interpreter = `${store}/1-glibc/lib/ld-linux-x86-64.so.2`;
  const root = await makeRoot(t, {
    'etc/static': `-> ${store}/9-etc`,
    'bin/sh': {},
    'run/current-system': `-> ${store}/0-system`,
    'nix/store/0-system/sw/bin/mount': `-> ${store}/2-util-linux/bin/mount`,
    'nix/store/0-system/sw/bin/chroot': `-> ${store}/3-coreutils/bin/chroot`,
    'nix/store/0-system/sw/bin/zfs': `-> ${store}/4-zfs/bin/zfs`,
    'nix/store/1-glibc/lib/ld-linux-x86-64.so.2': {},
    'nix/store/1-glibc/lib/libc.so.6': {},
    'nix/store/2-util-linux/bin/mount': {
      interpreter,
      needed: ['libmount.so.1', 'libc.so.6'],
      runPath: `$ORIGIN/../lib:${store}/1-glibc/lib`,
    },
    'nix/store/2-util-linux/lib/libmount.so.1': {},
    'nix/store/3-coreutils/bin/chroot': '-> coreutils',
    'nix/store/3-coreutils/bin/coreutils': { interpreter, needed: ['libc.so.6'] },
    'nix/store/4-zfs/bin/zfs': { interpreter },
  });
  const settings = { searchPath: ['/made-up/bin', '/run/current-system/sw/bin'] };
  const mount = await start(root, 'mount', settings);
  const libraries = `${root}${store}/2-util-linux/lib:${root}${store}/1-glibc/lib`;
  const loader = [`${root}${interpreter}`, '--library-path'];
  assert.deepEqual(mount.start.argv, [...loader, libraries, `${root}${store}/2-util-linux/bin/mount`]);
  const zfs = await start(root, 'zfs', settings);
  assert.deepEqual(zfs.start.argv, [
    ...loader,
    `${root}${store}/1-glibc/lib`,
    '--argv0',
    'chroot',
    `${root}${store}/3-coreutils/bin/coreutils`,
    root,
    '/run/current-system/sw/bin/zfs',
  ]);
});

test('without a chroot anywhere, the reason is told', async (t) => {
  const { 'made-up/bin/chroot': _none, ...rest } = debian;
  const root = await makeRoot(t, rest);
  const { passed } = await located(root, 'iscsiadm');
  assert.deepEqual(passed, [`not in ${tools}`, `no chroot from ${root}: it is not there`]);
});

test('links that lead out of the root, in circles or nowhere', async (t) => {
  const root = await makeRoot(t, {
    ...debian,
    'made-up/bin/up': '-> ../../../../../made-up/bin/static',
    'made-up/bin/circle': '-> circle',
    'made-up/bin/gone': '-> /none',
  });
  assert.equal((await start(root, 'up')).file, `${root}${tools}/static`);
  for (const program of ['circle', 'gone']) assert.equal((await located(root, program)).strategy, undefined);
});

test('nsenter goes to the mount namespace of a process, with iscsiadm to its network too', async () => {
  const { pid } = process;
  const settings = { ...defaultHostSettings, strategy: 'nsenter' as const, pid };
  const programs = { iscsiadm: { path: '/bin/sh' } };
  const [mount, iscsiadm] = await Promise.all(
    ['mount', 'iscsiadm'].map((one) => locate(one, { settings: { ...settings, programs }, path: '' })),
  );
  assert.ok(mount?.strategy === 'nsenter' && iscsiadm?.strategy === 'nsenter');
  assert.match(mount.start.argv[0] ?? '', /\/nsenter$/);
  assert.deepEqual(mount.start.argv.slice(1, 3), [`--mount=/proc/${pid}/ns/mnt`, '--']);
  assert.match(mount.start.argv[3] ?? '', /^\/(usr\/)?bin\/mount$/);
  assert.deepEqual(iscsiadm.start.argv.slice(1), [
    `--mount=/proc/${pid}/ns/mnt`,
    `--net=/proc/${pid}/ns/net`,
    '--',
    '/bin/sh',
  ]);
  assert.deepEqual(mount.place, { way: 'nsenter', root: `/proc/${pid}/root`, pid });
});

async function sleeper(t: TestContext, program: string): Promise<number> {
  const child = spawn(program, ['600'], { stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  while ((await oldestProcess('made-up (daemon)')) === undefined) await setImmediate();
  return child.pid as number;
}

test('a process is found by its name, the oldest of several', async (t) => {
  assert.equal(await oldestProcess('made-up (daemon)'), undefined);
  const root = await makeRoot(t, {});
  const program = join(root, 'made-up (daemon)');
  await symlink('/bin/sleep', program);
  const first = await sleeper(t, program);
  await sleeper(t, program);
  assert.equal(await oldestProcess('made-up (daemon)'), first);
  const settings = { ...defaultHostSettings, strategy: 'nsenter' as const, pid: 'made-up (daemon)' };
  const found = await locate('mount', { settings, path: '' });
  assert.ok(found.strategy !== undefined);
  assert.equal(found.place?.pid, first);
  const none = await locate('mount', { settings: { ...settings, pid: 'no-such-daemon' }, path: '' });
  assert.match(none.passed[0] ?? '', /^there is no process no-such-daemon/);
});

test('a file system whose mount helper only the host has is mounted there', async (t) => {
  const root = await makeRoot(t, debian);
  const settings = { ...defaultHostSettings, root, searchPath: [tools] };
  const needs = (type: string, more: Partial<HostSettings> = {}) =>
    needsHostsHelper(type, { settings: { ...settings, ...more }, path: '' });
  assert.equal(await needs('nfs'), true);
  assert.equal(await needs('fuse.bindfs'), true, 'that of fuse');
  for (const type of ['ext4', '', '../bin/mount', '-x']) assert.equal(await needs(type), false, type);
  for (const strategy of ['direct', 'chroot', 'nsenter'] as const)
    assert.equal(await needs('nfs', { strategy }), false);
  assert.equal(await needs('nfs', { programs: { mount: { strategy: 'direct' } } }), false);
  assert.equal(await needs('nfs', { root: '/none' }), false);
  assert.equal((await start(root, 'mount', { inRoot: 'host' })).strategy, 'chroot');
});
