/** Nothing is lost, and nothing of somebody else is touched, when things are not as they should be: each of these lost data once. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { nodeVolume } from './node-volume.ts';
import { programInGuest } from './program.ts';
import { nasConnection, startZfsNas } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const copied = { detachedVolumesFromVolumes: 'true' };

describe('what must not be lost', { skip: noGuests, timeout: 590_000 }, () => {
  let guest: Guest;
  let server: Switchboard;

  const connections = () => ({
    nfs: nasConnection(guest, 'nfs'),
    iscsi: nasConnection(guest, 'iscsi'),
    // As OpenZFS before 2.0: there is no `rename -u`.
    old: nasConnection(guest, 'nfs', { root: 'tank/old', zfs: ['cli: { paths: { zfs: /usr/local/sbin/old-zfs } }'] }),
    pond: nasConnection(guest, 'nfs', { root: 'pond/nfs' }),
    subsystems: nasConnection(guest, 'nvmeof', { root: 'pond/nvmeof' }).replace(
      'nvmeof:\n',
      "nvmeof:\n  nameTemplate: '{{ parameters.app }}-{{ name }}'\n",
    ),
    mixed: nasConnection(guest, 'dataset', { root: 'tank/mixed' }),
  });
  before(async () => {
    guest = await boot('zfssafety', { disks: [4096 * mib, 512 * mib] });
    await startZfsNas(guest);
    await guest.run(`set -e
      printf '#!/bin/sh\\n[ "$1 $2" != "rename -u" ] || { echo "invalid option u" >&2; exit 2; }\\nexec /sbin/zfs "$@"\\n' >/usr/local/sbin/old-zfs
      chmod +x /usr/local/sbin/old-zfs
      zpool create -O mountpoint=/pond pond /dev/ubdc`);
    const files = Object.entries(connections()).map(([name, text]) => [`connections/${name}.yaml`, text]);
    server = await startSwitchboard(guest, {
      config: 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/main/connections\n',
      files: Object.fromEntries(files),
    });
  });
  after(() => guest?.down());

  const storage = (connection: string, access = '') => controllerClient(() => server, { connection, access });
  const orphans = async (connection: string, ...args: readonly string[]) => {
    const program = await programInGuest();
    const config = `/run/switchboard/main/connections/${connection}.yaml`;
    return guest.attempt([...program, 'ctl', 'orphans', '--config', config, ...args].join(' '));
  };
  const isThere = async (name: string) => (await guest.attempt(`zfs list ${name}`)).code === 0;

  test('a volume has the data of its own source, and of the time at which it was asked for', async () => {
    const { create, remove } = storage('nfs');
    const [a, b] = [await create('a'), await create('b')];
    await guest.run(`set -e
      echo of a >/tank/nfs/v/a/data; head -c 24M /dev/urandom >/tank/nfs/v/a/more; echo of b >/tank/nfs/v/b/data
      sync; zpool sync; zfs set quota=$(($(zfs get -H -p -o value used tank/nfs/v) + 12000000)) tank/nfs/v`);
    // It comes to its end in the middle, and nobody asks for it again.
    await assert.rejects(create('x', { volume: a.volumeId, parameters: copied }), { code: 'RESOURCE_EXHAUSTED' });
    await guest.run('zfs set quota=none tank/nfs/v');
    assert.match(await guest.run('zfs get -H -o value receive_resume_token -r tank/nfs/v'), /^1-/m);
    await create('x', { volume: b.volumeId, parameters: copied });
    assert.equal(await guest.run('cat /tank/nfs/v/x/data'), 'of b\n');
    assert.equal(await guest.run('zfs list -H -o name -r tank/nfs/v | grep copy: || true'), '');

    await guest.run(`set -e
      zfs snapshot tank/nfs/v/a@volume-source-for-volume-y
      zfs snapshot tank/nfs/v/a@volume-source-for-volume-z; zfs clone tank/nfs/v/a@volume-source-for-volume-z tank/kept
      echo new >/tank/nfs/v/a/data; sync`);
    await create('y', { volume: a.volumeId });
    assert.equal(await guest.run('cat /tank/nfs/v/y/data'), 'new\n');
    await assert.rejects(create('z', { volume: a.volumeId }), { code: 'FAILED_PRECONDITION' });
    assert.equal(await guest.run('cat /tank/kept/data; zfs destroy tank/kept'), 'of a\n');
    await create('z', { volume: a.volumeId });
    assert.equal(await guest.run('cat /tank/nfs/v/z/data'), 'new\n');
    for (const id of ['x', 'y', 'z', 'b', 'a']) await remove(`v:nfs/${id}`);
  });

  test('what only has a name like that of something left over stays', async () => {
    const { create, remove } = storage('nfs');
    const foreign = ['trash:keep-me', 'trash:b:01234567', 'copy:gone', 'copy:gone:123'];
    await guest.run(`set -e
      for name in ${foreign.join(' ')}; do zfs create tank/nfs/v/$name; echo mine >/tank/nfs/v/$name/data; done
      zfs create -o democratic-csi:managed_resource=true tank/nfs/v/trash:c:01234567; zfs create tank/nfs/v/trash:c:01234567/child
      zfs create -o democratic-csi:managed_resource=true tank/nfs/v/trash:d:01234567; zfs snapshot tank/nfs/v/trash:d:01234567@auto`);
    await remove('v:nfs/gone');
    // Another process looks through the trash that is there when volumes come and go for the first time.
    const other = await startSwitchboard(guest, { config: nasConnection(guest, 'nfs'), name: 'other' });
    const { create: createThere, remove: removeThere } = controllerClient(() => other);
    await createThere('short');
    await removeThere('short');
    await guest.run('until ! zfs list tank/nfs/v/trash:d:01234567 2>/dev/null; do sleep 0.2; done', {
      timeoutMs: 60_000,
    });
    assert.equal(await other.stop(), 0);
    assert.equal((await orphans('nfs', '--older-than', '1s', '--fix', '--yes')).code, 1);
    for (const name of foreign) assert.equal(await guest.run(`cat /tank/nfs/v/${name}/data`), 'mine\n', name);
    assert.ok(await isThere('tank/nfs/v/trash:c:01234567/child'));
    await create('whole');
    await remove('v:nfs/whole');
    await guest.run(`for name in ${foreign.join(' ')} trash:c:01234567; do zfs destroy -r tank/nfs/v/$name; done`);
  });

  test('without their pool, volumes are not gone', async () => {
    const pond = storage('pond');
    const subsystems = storage('subsystems', 'ext4');
    const { volumeId } = await pond.create('one');
    const { snapshotId } = await pond.snapshot(volumeId, 'shot');
    const block = await subsystems.create('two', { parameters: { app: 'web' } });
    assert.equal(block.volumeContext.nqn, 'nqn.2026-01.org.lab:web-two');
    const targets = 'ls /sys/kernel/config/nvmet/subsystems | grep org.lab || true';
    const shown = await guest.run(targets);
    await guest.run(`set -e
      echo kept >/pond/nfs/v/one/data
      echo 0 >/sys/kernel/config/nvmet/subsystems/nqn.2026-01.org.lab:web-two/namespaces/1/enable
      zpool export pond`);
    const refused = { code: 'UNAVAILABLE', message: /the pool pond is not imported/ };
    for (const call of [
      () => pond.remove(volumeId),
      () => pond.removeSnapshot(snapshotId),
      () => pond.get(volumeId),
      () => pond.snapshots(volumeId),
      () => pond.create('three'),
      () => subsystems.remove(block.volumeId),
    ]) {
      await assert.rejects(call(), refused);
    }
    const { code, stderr } = await orphans('subsystems', '--fix', '--yes');
    assert.notEqual(code, 0);
    assert.match(stderr, /pond is not imported/);
    assert.equal(await guest.run(targets), shown);

    // Nor when the pool is there, but the dataset of all volumes has another name for a while.
    await guest.run('zpool import pond; zfs rename pond/nvmeof pond/moved');
    assert.equal((await orphans('subsystems', '--fix', '--yes')).code, 0);
    assert.equal(await guest.run(targets), shown);
    await guest.run('zfs rename pond/moved pond/nvmeof');

    await guest.run('zpool export pond; zpool import -o readonly=on pond');
    await assert.rejects(pond.remove(volumeId), { code: 'FAILED_PRECONDITION', message: /read-only|snapshots of it/ });
    await guest.run('zpool export pond; zpool import pond');
    await pond.removeSnapshot(snapshotId);
    await guest.run('zpool export pond; zpool import -o readonly=on pond; zfs share -a');
    await assert.rejects(pond.remove(volumeId), { code: 'FAILED_PRECONDITION', message: /read-only/ });
    assert.match(await guest.run('exportfs -s; cat /pond/nfs/v/one/data'), /^\/pond\/nfs\/v\/one [\s\S]*kept\n$/m);
    await guest.run('zpool export pond; zpool import pond');
    await pond.remove(volumeId);

    // The name was made of parameters that went with the dataset.
    await guest.run('zfs destroy pond/nvmeof/v/two');
    await subsystems.remove(block.volumeId);
    assert.equal(await guest.run(targets), '');
  });

  test('a volume that is in use stays as it was when it cannot be deleted', async () => {
    const block = storage('iscsi', 'ext4');
    const { volumeId } = await block.create('used');
    const target = 'test -d /sys/kernel/config/target/iscsi/iqn.2026-01.org.lab:csi-used/tpgt_1/lun/lun_0';
    const old = storage('old');
    await old.create('used');
    await guest.run(`echo kept >/tank/old/v/used/data
      (exec 8</dev/zvol/tank/iscsi/v/used; cd /tank/old/v/used; exec sleep 600) >/dev/null 2>&1 & echo $! >/run/user.pid; sleep 0.2`);
    await Promise.all([
      assert.rejects(block.remove(volumeId), { code: 'FAILED_PRECONDITION', message: /busy/ }),
      assert.rejects(old.remove('v:old/used'), { code: 'FAILED_PRECONDITION', message: /busy/ }),
    ]);
    await guest.run(target);
    assert.match(await guest.run('exportfs -s; cat /tank/old/v/used/data'), /^\/tank\/old\/v\/used [\s\S]*kept\n$/m);
    assert.equal((await old.get('v:old/used')).status?.volumeCondition?.abnormal, false);
    await guest.run('kill $(cat /run/user.pid)');
    await block.remove(volumeId);
    await old.remove('v:old/used');
    assert.notEqual((await guest.attempt(target)).code, 0);
    assert.ok(!(await isThere('tank/old/v/used')));
  });

  test('the permissions of a volume are given once', async () => {
    const { create, get, remove } = storage('nfs');
    await create('data');
    await create('empty');
    const perm = (id: string) => guest.run(`stat -c '%a %u' /tank/nfs/v/${id}`);
    // As a crash leaves it right after it was made: marked as complete, not mounted, as ZFS makes it.
    await guest.run(`set -e
      cd /tank/nfs/v; echo kept >data/file; chown 999 data; chmod 0700 data; chmod 0755 empty
      zfs unmount tank/nfs/v/data; zfs unmount tank/nfs/v/empty; mkdir -p data empty`);
    await create('data');
    await create('empty');
    assert.equal(await perm('data'), '700 999\n');
    assert.equal(await perm('empty'), '777 0\n');
    for (const id of ['data', 'empty']) {
      assert.equal((await get(`v:nfs/${id}`)).status?.volumeCondition?.abnormal, false);
    }
    // The same when it was mounted: whoever does not ask for it again finds it.
    await guest.run('chmod 0755 /tank/nfs/v/empty; zfs create tank/nfs/v/mine');
    const { stdout } = await orphans('nfs', '--older-than', '1s', '--json', '--fix', '--yes');
    const { orphans: found } = JSON.parse(stdout);
    assert.deepEqual(
      found.map(({ name, kind, outcome }: Record<string, string>) => [name, kind, outcome]),
      [['tank/nfs/v/empty', 'unfinished', 'fixed']],
    );
    assert.equal(await perm('empty'), '777 0\n');
    assert.equal(await perm('data'), '700 999\n');
    await guest.run('zfs destroy tank/nfs/v/mine');
    for (const id of ['data', 'empty']) await remove(`v:nfs/${id}`);
  });

  test('what is mounted over a volume stays mounted', async () => {
    const { create, remove } = storage('nfs');
    await create('covered');
    await guest.run(`set -e
      zfs snapshot tank/nfs/v/covered@by-hand; zfs unmount tank/nfs/v/covered
      mkdir -p /tank/nfs/v/covered; mount -t tmpfs foreign /tank/nfs/v/covered; echo mine >/tank/nfs/v/covered/file`);
    await remove('v:nfs/covered');
    assert.ok(!(await isThere('tank/nfs/v/covered')));
    assert.equal(
      await guest.run('cat /tank/nfs/v/covered/file; umount /tank/nfs/v/covered; rmdir /tank/nfs/v/covered'),
      'mine\n',
    );
  });

  test('volumes are where nodes are told that they are', async () => {
    const { create, remove } = storage('old');
    await create('before');
    // Its place is known by now; then it moves, and something else is where it was.
    await guest.run(`set -e
      zfs set mountpoint=/moved tank/old/v; mkdir -p /tank/old/v/after; chmod 0700 /tank/old/v/after`);
    const { volumeContext } = await create('after');
    assert.equal(volumeContext.share, '/moved/after');
    assert.equal(await guest.run('stat -c %a /tank/old/v/after /moved/after'), '700\n777\n');
    assert.equal((await create('before')).volumeContext.share, '/moved/before');
    for (const id of ['before', 'after']) await remove(`v:old/${id}`);
    await guest.run('rm -r /tank/old/v/after');
  });

  test('only volumes get snapshots, and only inline volumes end with their pods', async () => {
    const { snapshot } = storage('nfs');
    await guest.run('zfs create -p tank/nfs/v/foreign');
    await assert.rejects(snapshot('v:nfs/foreign', 'shot'), { code: 'NOT_FOUND' });
    assert.equal(await guest.run('zfs list -H -o name -t snapshot -r tank/nfs/v/foreign'), '');

    const { volumeId } = await storage('mixed', 'zfs').create('lasting');
    const inline = await startSwitchboard(guest, {
      config: 'driver: zfs-local-ephemeral-inline\nzfs:\n  datasetParentName: tank/mixed\n',
      name: 'inline',
    });
    const volume = nodeVolume(() => inline, { id: 'lasting', context: {} });
    await volume.unpublish('rw').catch(() => {});
    assert.ok(await isThere('tank/mixed/v/lasting'));
    assert.equal(await inline.stop(), 0);
    await storage('mixed').remove(volumeId);
  });
});
