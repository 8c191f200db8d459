import assert from 'node:assert/strict';
import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readHostFile } from '../../src/backends/exec/host-file.ts';
import { createHostPrograms } from '../../src/backends/exec/host-programs.ts';
import {
  defaultHostSettings,
  type HostSettings,
  programsFromEnvironment,
} from '../../src/backends/exec/host-settings.ts';
import { type CommandEvent, createRunner } from '../../src/backends/exec/runner.ts';
import { detachedContext } from '../../src/core/call.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';
import { type FakeRoot, makeRoot } from './exec-fake-root.ts';

const call = detachedContext(silentLogger);

const tools: FakeRoot = {
  'etc/hosts': '',
  'bin/sh': {},
  'made-up/bin/chroot': '#!/bin/sh\n',
  'made-up/bin/mount': {},
  'made-up/bin/umount': {},
  'made-up/bin/mount.nfs': {},
  'made-up/bin/zfs': '#!/bin/sh\n',
};

function programs(root: string, more: Partial<HostSettings> = {}, mounts = '') {
  const settings = { ...defaultHostSettings, root, searchPath: ['/made-up/bin', '/usr/sbin', '/sbin'], ...more };
  let readings = 0;
  const readMounts = async () => {
    readings += 1;
    return parseMountTable(mounts);
  };
  return { ...createHostPrograms({ settings, path: '', readMounts }), readings: () => readings };
}

const shared = (root: string) =>
  [
    `1 0 0:50 / / rw master:9 - overlay o rw`,
    `2 1 8:1 / ${root} rw shared:1 - ext4 /dev/x rw`,
    `3 1 8:1 /srv /csi rw shared:1 - ext4 /dev/x rw`,
  ].join('\n');

test('direct asks nothing of the machine', () => {
  const { strategy } = programs('/none', { strategy: 'direct' });
  assert.deepEqual(strategy('no-such-program', ['a']), { file: 'no-such-program', args: ['a'] });
});

test('what was found in this root costs nothing from then on', async () => {
  const { strategy, readings } = programs('/none', { searchPath: ['/usr/bin', '/bin'] });
  await strategy('mount', ['a']);
  const again = strategy('mount', ['b']);
  assert.ok(!(again instanceof Promise));
  assert.deepEqual([again.file, again.args, again.env, readings()], ['mount', ['b'], undefined, 0]);
});

test('a program that runs in the root of the host gets paths and an environment of that root', async (t) => {
  const root = await makeRoot(t, tools);
  const { strategy } = programs(root, { strategy: 'chroot' }, shared(root));
  const { file, args, env } = await strategy('umount', ['/csi/v1']);
  assert.match(file, /\/chroot$/);
  assert.deepEqual(args, [root, '/made-up/bin/umount', '/srv/v1']);
  assert.deepEqual(env, { PATH: '/made-up/bin:/usr/sbin:/sbin' });
});

test('arguments that speak of the host are left alone', async (t) => {
  const root = await makeRoot(t, tools);
  const { strategy, readings } = programs(root, {}, shared(root));
  const { args } = await strategy('zfs', ['create', '/csi/v1']);
  assert.deepEqual(args, [root, '/made-up/bin/zfs', 'create', '/csi/v1']);
  assert.equal(readings(), 0);
});

test('a mount whose type has a helper runs in the root of the host, others and bind mounts in this one', async (t) => {
  const root = await makeRoot(t, tools);
  const own = `${root}/made-up/bin/mount`;
  const auto = programs(root, {}, shared(root)).strategy;
  assert.match((await auto('mount', ['-t', 'nfs', 'nas:/x', '/csi/v1'])).file, /\/chroot$/);
  assert.equal((await auto('mount', ['-t', 'ext4', '/dev/sda', '/csi/v1'])).file, own);
  const chroot = programs(root, { strategy: 'chroot' }, shared(root)).strategy;
  const bound = await chroot('mount', ['-o', 'bind,ro', '/csi/a', '/csi/b']);
  assert.deepEqual([bound.file, bound.args], [own, ['-o', 'bind,ro', '/csi/a', '/csi/b']]);
  assert.match((await chroot('mount', ['-t', 'ext4', '/dev/sda', '/csi/v1'])).file, /\/chroot$/);
});

test('a program that was moved or replaced is found again; one that is gone is missing', async (t) => {
  const root = await makeRoot(t, tools);
  const { strategy } = programs(root, { searchPath: ['/made-up/bin', '/made-up/other'] });
  assert.equal((await strategy('mount', [])).file, `${root}/made-up/bin/mount`);
  await rm(join(root, 'made-up/bin/mount'));
  await assert.rejects(Promise.resolve(strategy('mount', [])), {
    code: 'FAILED_PRECONDITION',
    message: `host program \`mount\` was not found (not in /made-up/bin:/made-up/other; not in /made-up/bin:/made-up/other of ${root})`,
  });
  await writeFile(join(root, 'made-up/bin/mount'), '#!/bin/sh\n');
  await chmod(join(root, 'made-up/bin/mount'), 0o755);
  await assert.rejects(Promise.resolve(strategy('mount', [])), {
    message: /no chroot from .*: .* is a script/,
  });
});

test('a program that is nowhere counts as missing', async () => {
  const events: CommandEvent[] = [];
  const { strategy } = programs('/none');
  const run = createRunner({ strategy, onCommand: (event) => events.push(event) });
  await assert.rejects(run(call, { program: 'no-such-program', args: [], timeoutMs: 1000 }), {
    code: 'FAILED_PRECONDITION',
  });
  assert.deepEqual(
    events.map(({ program, outcome }) => [program, outcome]),
    [['no-such-program', 'missing']],
  );
});

test('a program is told the name that the strategy gives it', async () => {
  const strategy = () => ({ file: '/bin/sh', args: ['-c', 'echo $0'], argv0: 'by-another-name' });
  const { stdout } = await createRunner({ strategy })(call, { program: 'x', args: [], timeoutMs: 30_000 });
  assert.equal(stdout, 'by-another-name\n');
});

test('the variables of democratic-csi’s image', () => {
  const warnings: string[] = [];
  const read = (env: Record<string, string>) => programsFromEnvironment(env, (warning) => warnings.push(warning));
  assert.deepEqual(read({}), {});
  assert.deepEqual(read({ ISCSIADM_HOST_STRATEGY: 'nsenter', ISCSIADM_HOST_PATH: '/usr/local/sbin/iscsiadm' }), {
    iscsiadm: { strategy: 'nsenter', pid: 'iscsid', path: '/usr/local/sbin/iscsiadm' },
  });
  assert.deepEqual(read({ ISCSIADM_HOST_STRATEGY: ' chroot ' }), { iscsiadm: { strategy: 'chroot' } });
  assert.deepEqual(read({ USE_HOST_MOUNT_TOOLS: '1' }), {
    mount: { strategy: 'chroot' },
    umount: { strategy: 'chroot' },
  });
  assert.deepEqual(read({ USE_HOST_MOUNT_TOOLS: '0', ISCSIADM_HOST_STRATEGY: '' }), {});
  assert.deepEqual(warnings, []);
  assert.deepEqual(read({ ISCSIADM_HOST_STRATEGY: 'magic' }), {});
  assert.match(warnings[0] ?? '', /ISCSIADM_HOST_STRATEGY="magic" is neither chroot nor nsenter/);
});

test('a file of the host is read here, or else in its root', async (t) => {
  const root = await makeRoot(t, { 'etc/made-up': '-> /srv/text', 'srv/text': 'of the host' });
  assert.equal(await readHostFile('/etc/made-up', root), 'of the host');
  assert.equal(await readHostFile(join(root, 'srv/text'), '/none'), 'of the host');
  await assert.rejects(readHostFile('/etc/none', root), { code: 'ENOENT', path: '/etc/none' });
});
