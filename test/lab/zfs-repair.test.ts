/** Datasets and zvols that become volumes by hand, and what is found and repaired of volumes that somebody or something broke. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type * as csi from '../../src/generated/csi.js';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { programInGuest } from './program.ts';
import { nasProxy, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const drivers = ['nfs', 'iscsi', 'nvmeof'] as const;
type Driver = (typeof drivers)[number];

interface Found {
  readonly name: string;
  readonly kind: string;
  readonly outcome: string;
  readonly problem?: string;
}

describe('adoption and repair', { skip: noGuests, timeout: 590_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfsrepair');
    await startZfsNas(guest);
    server = await startSwitchboard(guest, nasProxy(guest, drivers));
  });
  after(() => guest?.down());

  const ctl = async (driver: Driver, ...args: readonly string[]) => {
    const program = await programInGuest();
    const config = `/run/switchboard/main/connections/${driver}.yaml`;
    return guest.attempt([...program, 'ctl', ...args, '--config', config].join(' '));
  };
  const orphans = async (driver: Driver, ...args: readonly string[]) => {
    const { code, stdout, stderr } = await ctl(driver, 'orphans', '--json', ...args);
    assert.match(stdout, /^\{/, stderr);
    const { orphans: found } = JSON.parse(stdout) as { readonly orphans: readonly Found[] };
    assert.equal(code, found.every(({ outcome }) => outcome === 'fixed') ? 0 : 1);
    return found.map(({ name, kind, outcome, problem }) =>
      [kind, name, outcome, ...(problem ? [problem] : [])].join(' '),
    );
  };

  test('a dataset with data becomes a volume', async () => {
    await guest.run(`set -e
      zfs create -p -o refquota=64M tank/nfs/v/photos
      echo kept >/tank/nfs/v/photos/data; chmod 0755 /tank/nfs/v/photos`);
    const adopted = await ctl('nfs', 'adopt', 'tank/nfs/v/photos', '--json');
    assert.equal(adopted.code, 0, adopted.stderr);
    const { handle, capacityBytes, context } = JSON.parse(adopted.stdout);
    assert.equal(handle, 'v:nfs/photos');
    assert.equal(capacityBytes, 64 * mib);
    const again = await ctl('nfs', 'adopt', 'photos');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /tank\/nfs\/v\/photos .* is a volume already/);

    const { list, onNode, expand, remove, create } = controllerClient(() => server, {
      connection: 'nfs',
      access: 'nfs',
    });
    assert.deepEqual(
      (await list()).map(({ volume }) => volume?.volumeId),
      [handle],
    );
    // The same as one that was made by this name, so that it can be asked for.
    const volume = await create('photos', { bytes: 64 * mib });
    assert.equal(volume.volumeId, handle);
    for (const [key, value] of Object.entries(context)) assert.equal(volume.volumeContext[key], value);
    const node = onNode(volume);
    await node.stage();
    await node.publish('rw');
    assert.equal(await guest.run(`cat ${node.target('rw')}/data; stat -c %a /tank/nfs/v/photos`), 'kept\n755\n');
    await node.unpublish('rw');
    await node.unstage();
    assert.equal((await expand(handle, 96 * mib)).capacityBytes, 96 * mib);
    await remove(handle);
    assert.deepEqual(await storedThings(guest), []);
  });

  test('a zvol with a file system becomes a volume', async () => {
    await guest.run(`set -e
      zfs create -p tank/iscsi/v; zfs create -s -V 64M tank/iscsi/v/disk; udevadm settle
      mkfs.ext4 -q /dev/zvol/tank/iscsi/v/disk; mount /dev/zvol/tank/iscsi/v/disk /mnt
      echo kept >/mnt/data; umount /mnt`);
    const adopted = await ctl('iscsi', 'adopt', 'disk');
    assert.equal(adopted.code, 0, adopted.stderr);
    const { create, onNode, remove } = controllerClient(() => server, { connection: 'iscsi', access: 'ext4' });
    const volume = await create('disk', { bytes: 64 * mib });
    const node = onNode(volume);
    await node.stage();
    await node.publish('rw');
    assert.equal(await guest.run(`cat ${node.target('rw')}/data`), 'kept\n');
    await node.unpublish('rw');
    await node.unstage();
    await remove(volume.volumeId);
    assert.deepEqual(await storedThings(guest), []);
  });

  test('what cannot be a volume stays as it is', async () => {
    await guest.run(`set -e
      zfs create -p tank/nfs/v/with/children; zfs create tank/nfs/v/a:b; zfs create tank/elsewhere
      zfs create -s -V 8M tank/nfs/v/block; zfs create -o mountpoint=legacy tank/nfs/v/legacy`);
    const refused: readonly (readonly [string, RegExp])[] = [
      ['with', /datasets below it/],
      ['tank/nfs/v/with/children', /not directly below/],
      ['a:b', /cannot be the id/],
      ['tank/elsewhere', /not directly below/],
      ['block', /is a volume, and volumes of zfs-generic-nfs are filesystems/],
      ['legacy', /is not mounted|no mount point/],
      ['missing', /does not exist|there is no/],
    ];
    for (const [name, why] of refused) {
      const { code, stderr } = await ctl('nfs', 'adopt', name);
      assert.equal(code, 1, name);
      assert.match(stderr, why);
    }
    const marked = await guest.run('zfs get -H -r -s local -o name,value democratic-csi:managed_resource tank');
    assert.equal(marked, '');
    await guest.run('zfs destroy -r tank/nfs/v; zfs destroy tank/elsewhere');
  });

  test('file systems: not shared, not finished, copies and snapshots that nobody needs', async () => {
    const { create, get, remove } = controllerClient(() => server, { connection: 'nfs', access: 'nfs' });
    const [whole, unshared, unfinished] = await Promise.all(
      ['whole', 'unshared', 'unfinished'].map((name) => create(name)),
    );
    await guest.run(`set -e
      zfs set sharenfs=off tank/nfs/v/unshared
      zfs inherit democratic-csi:provision_success tank/nfs/v/unfinished
      zfs inherit democratic-csi:csi_share_volume_context tank/nfs/v/unfinished
      chmod 0700 /tank/nfs/v/unfinished
      zfs snapshot tank/nfs/v/whole@volume-source-for-volume-gone
      zfs snapshot tank/nfs/v/whole@by-hand
      zfs snapshot tank/nfs/v/whole@volume-source-for-volume-held; zfs hold lab tank/nfs/v/whole@volume-source-for-volume-held
      zfs create tank/nfs/v/mine; zfs snapshot tank/nfs/v/mine@by-hand
      zfs send tank/nfs/v/mine@by-hand | zfs receive -u tank/nfs/v/copy:gone:$(zfs get -H -p -o value guid tank/nfs/v/mine@by-hand)`);
    const copy = (await guest.run("zfs list -H -o name -r tank/nfs/v | grep '/copy:gone:'")).trim();
    assert.deepEqual(await orphans('nfs'), ['not-shared tank/nfs/v/unshared left']);
    const before = await storedThings(guest);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const all = [
      'not-shared tank/nfs/v/unshared',
      'unfinished tank/nfs/v/unfinished',
      `copy ${copy}`,
      'snapshot tank/nfs/v/whole@volume-source-for-volume-gone',
    ];
    const sorted = (found: readonly string[]) => found.toSorted();
    assert.deepEqual(sorted(await orphans('nfs', '--older-than', '1s')), sorted(all.map((one) => `${one} left`)));
    assert.deepEqual(await storedThings(guest), before);
    const unasked = await ctl('nfs', 'orphans', '--older-than', '1s', '--fix');
    assert.equal(unasked.code, 2);
    assert.deepEqual(await storedThings(guest), before);

    const fixed = await orphans('nfs', '--older-than', '1s', '--fix', '--yes');
    assert.deepEqual(sorted(fixed), sorted(all.map((one) => `${one} fixed`)));
    assert.deepEqual(await orphans('nfs', '--older-than', '1s'), []);
    for (const volume of [whole, unshared, unfinished]) {
      const { status } = await get(volume?.volumeId ?? '');
      assert.equal(status?.volumeCondition?.abnormal, false, status?.volumeCondition?.message);
    }
    assert.equal(
      await guest.run('stat -c %a /tank/nfs/v/unfinished; zfs list -H -o name tank/nfs/v/mine'),
      '777\ntank/nfs/v/mine\n',
    );
    await guest.run('zfs release lab tank/nfs/v/whole@volume-source-for-volume-held; zfs destroy -r tank/nfs/v/mine');
    for (const volume of [whole, unshared, unfinished]) await remove(volume?.volumeId ?? '');
    assert.deepEqual(await storedThings(guest), []);
  });

  for (const driver of ['iscsi', 'nvmeof'] as const) {
    test(`${driver}: targets without a volume, volumes without a target`, async () => {
      const { create, get, onNode, remove, validate } = controllerClient(() => server, {
        connection: driver,
        access: 'ext4',
      });
      const names = driver === 'iscsi' ? ['whole', 'bare'] : ['whole', 'bare', 'gone'];
      const [whole, bare] = await Promise.all(names.map((name) => create(name)));
      assert.deepEqual(await orphans(driver), []);
      // As a host comes up without its saved targets, and as somebody destroys a volume by hand.
      const [list, kernel] =
        driver === 'iscsi'
          ? ['iqn.2026-01.org.lab:csi-', 'targetcli /iscsi delete NAME; targetcli /backstores/block delete csi-bare']
          : [
              'nqn.2026-01.org.lab:',
              'cd /sys/kernel/config/nvmet; rm ports/1/subsystems/NAME; rmdir subsystems/NAME/namespaces/1 subsystems/NAME',
            ];
      const lose = () => guest.run(`set -e; ${kernel.replaceAll('NAME', `${list}bare`)}`);
      // Whoever asks for it again gets it shown again.
      await lose();
      const { volumeId, volumeContext } = bare as csi.Volume;
      const { status } = await get(volumeId);
      assert.equal(status?.volumeCondition?.abnormal, true);
      assert.match(status?.volumeCondition?.message ?? '', /does not show it/);
      assert.ok(!(await validate(volumeId, volumeContext)).confirmed);
      assert.deepEqual((await create('bare')).volumeContext, volumeContext);
      assert.equal((await get(volumeId)).status?.volumeCondition?.abnormal, false);
      assert.deepEqual(await orphans(driver), []);

      await lose();
      await guest.run(targetOfNothing[driver](`${list}gone`));
      const all = [`not-shared tank/${driver}/v/bare`, `target ${list}gone`];
      assert.deepEqual(
        await orphans(driver),
        all.map((one) => `${one} left`),
      );
      assert.deepEqual(
        await orphans(driver, '--fix', '--yes'),
        all.map((one) => `${one} fixed`),
      );
      assert.deepEqual(await orphans(driver), []);
      for (const volume of [whole, bare]) {
        if (!volume) throw new Error('it was not made');
        await onNode(volume).stage();
        await onNode(volume).unstage();
        await remove(volume.volumeId);
      }
      assert.deepEqual(await storedThings(guest), []);
    });
  }
});

/** Nothing that a target has opened can be destroyed. */
const targetOfNothing = {
  // What is left when a host restores its targets and the zvol is not there any more.
  iscsi: (name: string) => `set -e; cd /sys/kernel/config/target
    mkdir -p core/iblock_77/csi-gone iscsi/${name}/tpgt_1
    echo /dev/zvol/tank/iscsi/v/gone >core/iblock_77/csi-gone/udev_path`,
  nvmeof: (name: string) => `set -e
    echo 0 >/sys/kernel/config/nvmet/subsystems/${name}/namespaces/1/enable
    zfs destroy tank/nvmeof/v/gone`,
} as const;
