/** What `doctor` makes of a host: programs, kernel, names, privileges, limits. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkHostNqn } from '../../src/cli/doctor/host-nqn.ts';
import { checkIdentity } from '../../src/cli/doctor/identity.ts';
import { checkInitiatorName } from '../../src/cli/doctor/initiator-name.ts';
import { checkKernel } from '../../src/cli/doctor/kernel.ts';
import { checkLimits } from '../../src/cli/doctor/limits.ts';
import { checkPrivileges } from '../../src/cli/doctor/privileges.ts';
import { checkPrograms, findVersion } from '../../src/cli/doctor/programs.ts';
import { CallError } from '../../src/core/errors.ts';
import { answer, briefly, connection, machine, only } from './doctor-support.ts';

const nowhere = async (program: string) => ({ program, strategy: undefined, passed: ['not in /usr/bin'] }) as const;

describe('programs', () => {
  test('what is missing is an error only where a connection needs it, and says which and what to install', async () => {
    const found = await checkPrograms(
      machine({ locate: nowhere, connections: [connection('nas', 'nfs-client'), connection('san', 'freenas-iscsi')] }),
    );
    const nfs = only(found, 'mount.nfs');
    assert.equal(nfs.state, 'error');
    assert.match(nfs.detail, /connection nas cannot do without it.*not in \/usr\/bin/);
    assert.match(nfs.advice ?? '', /nfs-common/);
    const errors = found.filter((one) => one.state === 'error').map((one) => one.name);
    for (const name of ['mount', 'umount', 'cp', 'iscsiadm', 'blkid', 'mkfs.ext4'])
      assert.ok(errors.includes(name), name);
    for (const name of ['nvme', 'zfs', 'mount.cifs', 'setquota']) assert.equal(only(found, name).state, 'note');
  });

  test('a controller mounts nothing', async () => {
    const modes = { controller: true, node: false };
    const found = await checkPrograms(
      machine({ locate: nowhere, modes, connections: [connection('nas', 'freenas-nfs')] }),
    );
    assert.deepEqual(
      found.filter((one) => one.state === 'error'),
      [],
    );
  });

  test('a controller that mounts its share itself needs what that takes', async () => {
    const modes = { controller: true, node: false };
    const found = (controllerMount: string) => {
      const connections = [connection('nas', 'nfs-client', { controllerMount })];
      return checkPrograms(machine({ locate: nowhere, modes, connections }));
    };
    const [never, auto] = [await found('never'), await found('auto')];
    assert.deepEqual([only(never, 'mount.nfs').state, only(never, 'mount').state], ['note', 'note']);
    assert.deepEqual([only(auto, 'mount.nfs').state, only(auto, 'mount').state], ['error', 'error']);
  });

  test('the programs of repositories are needed where snapshots are kept in them', async () => {
    const found = (more: { repositories?: readonly string[] }) =>
      checkPrograms(machine({ locate: nowhere, connections: [connection('disk', 'local-hostpath', more)] }));
    const [none, some] = [await found({}), await found({ repositories: ['restic'] })];
    assert.deepEqual([only(none, 'restic').state, only(none, 'kopia').state], ['note', 'note']);
    assert.deepEqual([only(some, 'restic').state, only(some, 'kopia').state], ['error', 'note']);
  });

  test('the tools of a quota follow the file system of the base path', async () => {
    const mountInfo = '1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /x rw - xfs /dev/sda2 rw\n';
    const at = (basePath: string) => [connection('disk', 'local-hostpath', { basePath, quota: true })];
    const onXfs = await checkPrograms(machine({ locate: nowhere, mountInfo, connections: at('/x/v') }));
    assert.deepEqual([only(onXfs, 'xfs_quota').state, only(onXfs, 'setquota').state], ['error', 'note']);
    const onExt = await checkPrograms(machine({ locate: nowhere, mountInfo, connections: at('/v') }));
    assert.deepEqual([only(onExt, 'xfs_quota').state, only(onExt, 'setquota').state], ['note', 'error']);
  });

  test('the strategy and the version; what cannot be started; what does not answer', async () => {
    const found = await checkPrograms(
      machine({
        connections: [connection('nas', 'nfs-client')],
        locate: async (program) => ({
          program,
          strategy: 'chroot',
          file: `/host/sbin/${program}`,
          start: { argv: [] },
          place: { way: 'chroot', root: '/host' },
          passed: [],
        }),
        run: async (_call, { program }) => {
          if (program === 'mount') return answer('', { code: 127, stderr: 'chroot: cannot run mount: No such file' });
          if (program === 'blkid') throw new CallError('DEADLINE_EXCEEDED', 'late');
          return answer('tool 1.2.3 (5-Feb-2023)');
        },
      }),
    );
    assert.equal(only(found, 'umount').detail, '1.2.3, /host/sbin/umount (chroot /host); unmounts volumes');
    assert.equal(only(found, 'mount').state, 'error');
    assert.match(only(found, 'mount').detail, /does not start: chroot: cannot run mount/);
    assert.equal(only(found, 'blkid').state, 'ok');
    assert.match(only(found, 'blkid').detail, /version not told/);
  });

  test('versions', () => {
    const cases = {
      'mount from util-linux 2.38.1 (libmount 2.38.1: selinux)': '2.38.1',
      'mke2fs 1.47.0 (5-Feb-2023)': '1.47.0',
      'cp (GNU coreutils) 9.1': '9.1',
      'zfs-2.1.11-1\nzfs-kmod-2.1.11-1': '2.1.11-1',
      'Docker version 28.1.0, build abc': '28.1.0',
      'BusyBox v1.36.1 (2023-11-07)': 'BusyBox 1.36.1',
      'Usage: chattr [-RVf] files...': undefined,
    };
    for (const [text, version] of Object.entries(cases)) assert.equal(findVersion(text), version, text);
  });
});

describe('kernel', () => {
  const fileTree = {
    '/proc/filesystems': 'nodev\tsysfs\nnodev\tfuse\n\text4\n',
    '/host/lib/modules/6.1/modules.dep':
      'kernel/fs/nfs/nfs.ko.xz: kernel/net/sunrpc.ko.xz\nkernel/drivers/md/dm-multipath.ko:\n',
    '/host/lib/modules/6.1/modules.builtin': 'kernel/drivers/block/loop.ko\n',
    '/sys/module/nvme_core/parameters/multipath': 'Y\n',
  };

  test('what is registered, what can be loaded, what is missing', async () => {
    const connections = [connection('share', 'smb-client')];
    const found = await checkKernel(machine({ fileTree, connections }), '6.1');
    assert.match(only(found, 'ext4').detail, /^there/);
    for (const name of ['nfs', 'loop', 'dm_multipath']) assert.match(only(found, name).detail, /^a module/, name);
    assert.equal(only(found, 'xfs').state, 'note');
    assert.equal(only(found, 'cifs').state, 'error');
    assert.match(only(found, 'cifs').detail, /connection share cannot do without it/);
    assert.match(only(found, 'NVMe multipath').detail, /^native/);
  });

  test('modules that are not to be seen are not said to be missing', async () => {
    const connections = [connection('share', 'smb-client')];
    const found = await checkKernel(machine({ fileTree, connections }), '6.2');
    assert.deepEqual(
      found.filter((one) => one.state === 'error'),
      [],
    );
    assert.equal(only(found, 'cifs').state, 'warning');
    assert.equal(only(found, 'modules').state, 'note');
  });
});

describe('initiator name', () => {
  const path = '/etc/iscsi/initiatorname.iscsi';
  const judge = async (text: string, more = {}, needed = true) => {
    const [found] = await checkInitiatorName(machine({ fileTree: { [path]: text, ...more } }), needed);
    return found?.state;
  };

  test('by what is in the file', async () => {
    assert.equal(await judge('## a comment\nInitiatorName=iqn.1993-08.org.debian:01:9d5ff0e1b2\n'), 'ok');
    assert.equal(await judge('InitiatorName=naa.52004567BA64678D\n'), 'ok');
    for (const bad of [
      '',
      'GenerateName=yes\n',
      'InitiatorName=\n',
      'InitiatorName=iqn.93-08.x:1\n',
      'InitiatorName=eui.1\n',
    ]) {
      assert.equal(await judge(bad), 'error', bad);
      assert.equal(await judge(bad, {}, false), 'warning', bad);
    }
    assert.equal(await judge('InitiatorName=iqn.2020-01.com.example:host\n'), 'error');
    assert.equal(await judge('InitiatorName=iqn.2020-01.a:1\nInitiatorName=iqn.2020-01.a:2\n'), 'error');
  });

  test('not there', async () => {
    assert.deepEqual(briefly(await checkInitiatorName(machine(), true)), ['error iSCSI initiator']);
    assert.deepEqual(briefly(await checkInitiatorName(machine(), false)), ['note iSCSI initiator']);
  });

  test('a name that others have too: of an image, or of a clone', async () => {
    const text = 'InitiatorName=iqn.1993-08.org.debian:01:9d5ff0e1b2\n';
    assert.equal(await judge(text, { [`/host${path}`]: 'InitiatorName=iqn.1993-08.org.debian:01:ffff\n' }), 'warning');
    assert.equal(await judge(text, { [`/host${path}`]: text }), 'ok');
    assert.equal(await judge(text, { '/etc/machine-id': { modified: 1e12 + 86_400_000 } }), 'warning');
    assert.equal(await judge(text, { '/etc/machine-id': { modified: 1e12 - 86_400_000 } }), 'ok');
  });

  test('the host’s own, seen from a container', async () => {
    const fileTree = { [`/host${path}`]: 'InitiatorName=iqn.1993-08.org.debian:01:ffff\n' };
    const [found] = await checkInitiatorName(machine({ fileTree }), true);
    assert.deepEqual([found?.state, found?.detail], ['ok', 'iqn.1993-08.org.debian:01:ffff']);
  });
});

describe('NVMe host', () => {
  const uuid = '2cd2c43b-a90a-45c1-a8cd-86b33ab273b5';
  const nqn = `nqn.2014-08.org.nvmexpress:uuid:${uuid}`;
  const judge = async (files: Record<string, string>, needed = true) => {
    const entries = Object.entries(files).map(([name, text]) => [
      name.startsWith('/') ? name : `/etc/nvme/${name}`,
      text,
    ]);
    return briefly(await checkHostNqn(machine({ fileTree: Object.fromEntries(entries) }), needed));
  };

  test('names and ids', async () => {
    assert.deepEqual(await judge({ hostnqn: `${nqn}\n`, hostid: `${uuid.toUpperCase()}\n` }), [
      'ok NVMe host NQN',
      'ok NVMe host id',
    ]);
    assert.deepEqual(await judge({ hostnqn: 'nqn.2020-01.org.acme:host-1' }), [
      'ok NVMe host NQN',
      'note NVMe host id',
    ]);
    assert.deepEqual(await judge({ hostnqn: 'nqn.2014-08.org.nvmexpress:uuid:1', hostid: 'x' }), [
      'error NVMe host NQN',
      'error NVMe host id',
    ]);
    assert.deepEqual(await judge({}), ['error NVMe host NQN']);
    assert.deepEqual(await judge({}, false), ['note NVMe host NQN']);
    assert.deepEqual(await judge({ '/sys/class/dmi/id/product_uuid': `${uuid}\n` }), ['ok NVMe host NQN']);
    assert.deepEqual(await judge({ hostnqn: `nqn.2020-01.org.acme:${'x'.repeat(220)}` }, false), [
      'warning NVMe host NQN',
      'note NVMe host id',
    ]);
  });

  test('an id of another machine, an image’s name, a uuid that many have', async () => {
    const other = uuid.replace('2', '3');
    assert.deepEqual(await judge({ hostnqn: nqn, hostid: other }), ['ok NVMe host NQN', 'warning NVMe host id']);
    assert.deepEqual(
      (await judge({ hostnqn: nqn, '/host/etc/nvme/hostnqn': nqn.replace('2cd', '3cd') }))[0],
      'warning NVMe host NQN',
    );
    const zero = '00000000-0000-0000-0000-000000000000';
    assert.deepEqual(
      await judge({
        hostnqn: nqn.replace(uuid, zero),
        hostid: zero,
        '/sys/class/dmi/id/product_uuid': `${zero}\n`,
      }),
      ['warning NVMe host NQN', 'ok NVMe host id', 'warning product uuid'],
    );
  });
});

test('node names that every machine has', async () => {
  const named = async (nodeName: string) =>
    only(await checkIdentity(machine({ nodeName }), async () => undefined), 'node name').state;
  assert.equal(await named('localhost'), 'warning');
  assert.equal(await named('worker-1'), 'ok');
});

describe('privileges', () => {
  const status = (mask: string) => ({ '/proc/self/status': `Name:\tx\nCapEff:\t${mask}\n` });
  const none = '00000000a80425fb';

  test('CAP_SYS_ADMIN', async () => {
    const connections = [connection('nas', 'nfs-client')];
    const state = async (facts: Parameters<typeof machine>[0]) =>
      only(await checkPrivileges(machine(facts)), 'CAP_SYS_ADMIN').state;
    assert.equal(await state({ fileTree: status('000001ffffffffff') }), 'ok');
    assert.equal(await state({ fileTree: status(none) }), 'warning');
    assert.equal(await state({ fileTree: status(none), connections }), 'error');
    assert.equal(
      await state({ fileTree: status(none), connections, modes: { controller: true, node: false } }),
      'note',
    );
  });

  test('containers', async () => {
    const text = async (facts: Parameters<typeof machine>[0]) =>
      only(await checkPrivileges(machine(facts)), 'container').detail;
    assert.match(await text({}), /^none/);
    assert.match(await text({ fileTree: { '/.dockerenv': '' } }), /Docker/);
    assert.match(await text({ fileTree: { '/proc/self/cgroup': '0::/kubepods/besteffort/pod1\n' } }), /kubepods/);
    assert.match(await text({ mountInfo: '1 0 0:9 / / rw - overlay overlay rw\n' }), /overlay/);
  });
});

test('limits: few open files, little space, few inodes', async () => {
  const limits = (hard: string) =>
    ({
      '/proc/self/limits': `Max open files            256                  ${hard}               files\n`,
      '/var/lib/switchboard': { kind: 'directory' },
    }) as const;
  const states = async (hard: string, freeBytes: number, freeFiles: number) =>
    (
      await checkLimits(machine({ fileTree: limits(hard), space: { bytes: 1000, freeBytes, files: 1000, freeFiles } }))
    ).map((one) => one.state);
  assert.deepEqual(await states('20000', 500, 500), ['ok', 'ok']);
  assert.deepEqual(await states('512', 10, 500), ['warning', 'warning']);
  assert.deepEqual(await states('unlimited', 500, 1), ['ok', 'warning']);
});
