/** What a node remembers of real disks, after kills, reboots and forgetful orchestrators. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { nodeVolume } from './node-volume.ts';
import { programInGuest } from './program.ts';
import { createBackingFile } from './services/backing.ts';
import { createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const state = '/var/lib/switchboard-main';
const portal = '10.0.2.15:3260';

interface Report {
  readonly leftovers: readonly { readonly volume: string; readonly outcome: string; readonly problem?: string }[];
}

describe('what is remembered of iSCSI volumes', { skip: noGuests, timeout: 600_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  const files = new Map<string, string>();
  const iqnOf = (name: string) => `iqn.2026-01.org.lab:${name}`;
  const volume = (name: string, id = name, access = 'ext4') =>
    nodeVolume(() => server, {
      id,
      access,
      context: { node_attach_driver: 'iscsi', portal, iqn: iqnOf(name), lun: '0' },
    });
  const sessions = async () =>
    (await guest.run('ls /sys/class/iscsi_session 2>/dev/null || true')).split('\n').filter(Boolean).length;
  const services = async () => {
    await startInitiator(guest);
    for (const [name, path] of files) {
      await createIscsiTarget(guest, { iqn: iqnOf(name), portals: [portal], luns: { 0: path } });
    }
    server = await startSwitchboard(guest, { args: ['--log-level', 'debug'] });
  };
  const cleanup = async (...args: string[]) => {
    const argv = [...(await programInGuest()), 'node', 'cleanup', '--json', ...args];
    const { stdout } = await guest.attempt(`SWITCHBOARD_STATE_DIR=${state} ${argv.join(' ')}`);
    return (JSON.parse(stdout) as Report).leftovers.map((one) => [one.volume, one.outcome, one.problem]);
  };

  before(async () => {
    guest = await boot('recovery');
    for (const name of ['one', 'two']) files.set(name, await createBackingFile(guest, name, 64 * mib));
    await services();
  });
  afterEach(() => assertNothingLeft(guest, server));
  after(() => guest?.down());

  test('unstaging takes three commands at most', async () => {
    const one = volume('one');
    await one.stage();
    const ran = () => server.log.filter(({ message }) => message === 'ran').map(({ program }) => program);
    const before = ran().length;
    await one.unstage();
    const commands = ran().slice(before);
    assert.ok(commands.length > 0 && commands.length <= 3, commands.join());
  });

  for (const operation of ['stage', 'unstage'] as const) {
    test(`the server is killed at any moment of ${operation}`, async () => {
      const one = volume('one');
      // Each process has iscsiadm make a record first, which is then only to be copied.
      for (const [index, pause] of [10, 50, 120, 300].entries()) {
        if (operation === 'unstage') await one.stage();
        const call = one[operation]().catch(() => {});
        await setTimeout(pause);
        await server.kill();
        await call;
        server = await startSwitchboard(guest, { args: ['--log-level', 'debug'] });
        if (index % 2 === 0) await one.stage();
        await one.unstage();
        await assertNothingLeft(guest, server);
      }
    });
  }

  test('the machine loses its power: unstage and stage get on from there', async () => {
    const [one, two] = [volume('one'), volume('two')];
    await Promise.all([one.stage(), two.stage()]);
    await guest.run(`echo precious >${two.staging}/file; sync`);
    await guest.reboot();
    await services();
    await one.unstage();
    await two.stage();
    assert.equal(await guest.run(`cat ${two.staging}/file`), 'precious\n');
    await two.unstage();
  });

  test('a volume whose record was lost is known by its disk', async () => {
    const [one, two] = [volume('one'), volume('two', 'two', 'block')];
    await Promise.all([one.stage(), two.stage()]);
    await guest.run(`rm -r ${state}/staged`);
    await one.unstage();
    assert.equal(await sessions(), 1, 'the other’s session');
    await two.unstage();
  });

  test('what nobody asks for any more is removed by the command, beside a server, and nothing else', async () => {
    const [one, two] = [volume('one'), volume('two')];
    await Promise.all([one.stage(), two.stage()]);
    await guest.run(`umount ${one.staging}`);
    assert.deepEqual(await cleanup('--yes'), [], 'the server may be about to mount it');
    await server.kill();
    server = await startSwitchboard(guest, { args: ['--log-level', 'debug'] });
    assert.deepEqual(await cleanup('--dry-run'), [['one', 'left', undefined]]);
    assert.deepEqual(await cleanup('--yes'), [['one', 'removed', undefined]]);
    assert.deepEqual([await cleanup('--yes'), await sessions()], [[], 1]);
    await two.unstage();
    await guest.run(`rmdir ${one.staging} || true`);
  });

  test('LVM on a raw volume keeps it attached', async () => {
    const two = volume('two', 'raw', 'block');
    await two.stage();
    await guest.run(`device=/dev/$(basename $(ls -d /sys/block/sd*)); wipefs -qa $device
      pvcreate -qy $device && vgcreate -qy lab $device && lvcreate -qy -L 16M -n data lab`);
    await assert.rejects(two.unstage(), { code: 'FAILED_PRECONDITION', message: /still in use by \/dev\/dm-\d+/ });
    assert.equal(await sessions(), 1);
    await guest.run('vgchange -qan lab; vgremove -qy lab; wipefs -qa /dev/$(basename $(ls -d /sys/block/sd*))');
    await two.unstage();
  });

  test('a partition that somebody has mounted keeps its disk attached', async () => {
    const two = volume('two', 'raw', 'block');
    await two.stage();
    await guest.run(`device=/dev/$(basename $(ls -d /sys/block/sd*)); echo ',32M,L' | sfdisk -q $device
      udevadm settle; mkfs.ext4 -q "$device"1; mkdir -p /run/partition; mount "$device"1 /run/partition`);
    await assert.rejects(two.unstage(), {
      code: 'FAILED_PRECONDITION',
      message: /still in use by the mount at \/run\/partition/,
    });
    await guest.run('umount /run/partition; wipefs -qa /dev/$(basename $(ls -d /sys/block/sd*))');
    await two.unstage();
  });

  test('a directory on an iSCSI disk of the host never costs the host its disk', async () => {
    await guest.run(`set -e
      iscsiadm -m node -T ${iqnOf('one')} -p ${portal} -o new >/dev/null; iscsiadm -m node -T ${iqnOf('one')} -p ${portal} -l >/dev/null
      until ls -d /sys/block/sd* >/dev/null 2>&1; do sleep 0.05; done; udevadm settle
      device=/dev/$(basename $(ls -d /sys/block/sd*)); mkfs.ext4 -qF $device
      mkdir -p /srv/disk; mount $device /srv/disk; mkdir -p /srv/disk/v`);
    for (const path of ['/srv/disk/v', '/srv/disk']) {
      const context = { node_attach_driver: 'hostpath', path };
      const local = nodeVolume(() => server, { id: 'local', context });
      for (const lost of [false, true]) {
        await local.stage();
        if (lost) await guest.run(`rm -r ${state}/staged`);
        await local.unstage();
        assert.equal(await sessions(), 1);
        assert.equal(await guest.run('findmnt -no TARGET /dev/sd?'), '/srv/disk\n');
      }
    }
    await guest.run(
      `umount /srv/disk && iscsiadm -m node -T ${iqnOf('one')} -p ${portal} -u >/dev/null && iscsiadm -m node -T ${iqnOf('one')} -p ${portal} -o delete`,
    );
  });
});
