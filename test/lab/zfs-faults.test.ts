/** What goes wrong with ZFS volumes: servers and networks that go away, pools that are full or suspended, two controllers at once, hostile names. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { nasConnection, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const copied = { detachedVolumesFromVolumes: 'true' };

/** Stands where sudo would: it says that it has begun, and waits until it may go on. */
const gate = `#!/bin/bash
shift
if [ -e /run/gate/closed ] && [ "$2" = create ]; then touch /run/gate/waiting; while [ -e /run/gate/closed ]; do sleep 0.05; done; fi
exec "$@"
`;

describe('ZFS volumes, when things go wrong', { skip: noGuests, timeout: 590_000 }, () => {
  let guest: Guest;
  let one: Switchboard;
  let other: Switchboard;
  before(async () => {
    guest = await boot('zfsfaults', { disks: [4096 * mib, 512 * mib] });
    await startZfsNas(guest);
    await guest.run('mkdir /run/gate; cat >/usr/local/sbin/gate && chmod +x /usr/local/sbin/gate', { input: gate });
    // A list of volumes takes all pools to be there.
    await guest.run(`set -e; truncate -s 128M /srv/small.img; zpool create -O mountpoint=/small small /srv/small.img; modprobe dm_mod
      dmsetup create sick --table "0 $((512 * 2048)) linear /dev/ubdc 0"; zpool create -o failmode=wait sick /dev/mapper/sick`);
    await startSshd();
    const zfs = [
      'datasetProperties: { "org.example:note": "{{ parameters.note }}", "org.example:name": "{{ name }}" }',
      'cli: { sudoEnabled: true, paths: { sudo: /usr/local/sbin/gate } }',
    ];
    const files = {
      'connections/nfs.yaml': nasConnection(guest, 'nfs', { port: 2222, zfs }),
      'connections/iscsi.yaml': nasConnection(guest, 'iscsi', { zfs: ['deleteWithClones: promote'] }),
      'connections/small.yaml': nasConnection(guest, 'nfs', {
        root: 'small/nfs',
        zfs: ['datasetEnableReservation: true'],
      }),
      'connections/secret.yaml': nasConnection(guest, 'nfs', { root: 'tank/secret/nfs' }),
      'connections/sick.yaml': nasConnection(guest, 'nvmeof', { root: 'sick/nvmeof' }),
    };
    const start = (name: string) => {
      const config = `driver: proxy\nproxy:\n  configFolder: /run/switchboard/${name}/connections\n`;
      return startSwitchboard(guest, { config, files, name });
    };
    one = await start('one');
    other = await start('other');
  });
  after(() => guest?.down());

  const killSessions = `kill -9 $(ss -tnpH 'sport = :2222' | grep -o 'pid=[0-9]*' | cut -d= -f2)`;
  const startSshd = () => guest.run('/usr/sbin/sshd -p 2222 -o PidFile=/run/sshd2.pid');
  const nfs = controllerClient(() => one, { connection: 'nfs' });
  const theirs = controllerClient(() => other, { connection: 'nfs' });
  const iscsi = controllerClient(() => one, { connection: 'iscsi' });
  const nothingStored = async () => assert.deepEqual(await storedThings(guest), []);

  const characters = [
    ...' \t\n\'"`$\\;&|<>(){}[]*?~#!%=,@/-.:^+',
    'a',
    'Z',
    '0',
    'é',
    '→',
    '$(id)',
    '${x}',
    '-o',
    '%s',
  ];
  const hostile = fc.array(fc.constantFrom(...characters), { minLength: 1, maxLength: 12 }).map((of) => of.join(''));

  test('names and parameters are what they are, whatever a shell or ZFS would make of them', async () => {
    const property = async (name: string, note: string) => {
      const made = await nfs.create(name, { parameters: { note } }).catch((error: Error & { code: string }) => {
        // Refused as such is well, too.
        assert.equal(error.code, 'INVALID_ARGUMENT', error.message);
      });
      if (!made) return;
      const dataset = `tank/nfs/v/${made.volumeId.replace('v:nfs/', '')}`;
      const read = async (key: string) => (await guest.run(`zfs get -H -o value ${key} '${dataset}'`)).slice(0, -1);
      assert.equal(await read('org.example:note'), note);
      assert.equal(await read('org.example:name'), name);
      assert.equal(await read('democratic-csi:csi_volume_name'), name);
      assert.deepEqual(await nfs.create(name, { parameters: { note } }), made);
      assert.ok((await nfs.list()).some(({ volume }) => volume?.volumeId === made.volumeId));
      await nfs.remove(made.volumeId);
    };
    await fc.assert(fc.asyncProperty(hostile, hostile, property), { numRuns: 12, endOnFailure: true });
    await nothingStored();
  });

  test('the names of targets are what targets can be called', async () => {
    for (const name of ["it's", 'Ünï code', 'a$(id)b', '-o x', 'UPPER_case', 'upper-case']) {
      const { volumeId, volumeContext } = await iscsi.create(name);
      assert.match(volumeContext.iqn ?? '', /^iqn\.2026-01\.org\.lab:csi-[a-z0-9.:-]+$/);
      await guest.run(`test -d '/sys/kernel/config/target/iscsi/${volumeContext.iqn}'`);
      await iscsi.remove(volumeId);
    }
    await nothingStored();
  });

  test('two controllers that make the same volumes make them once', async () => {
    const both = async <T>(call: (storage: typeof nfs) => Promise<T>) => {
      const results = await Promise.allSettled([call(nfs), call(theirs)]);
      // Who comes second may be told so, and finds what is there.
      for (const [index, result] of results.entries()) {
        if (result.status === 'rejected') await call(index === 0 ? nfs : theirs);
      }
    };
    const source = await nfs.create('source');
    await both((storage) => storage.create('raced'));
    await both((storage) => storage.create('cloned', { volume: source.volumeId }));
    await both((storage) => storage.create('copied', { volume: source.volumeId, parameters: copied }));
    await both((storage) => storage.snapshot(source.volumeId, 'snap'));
    await both((storage) => storage.snapshot(source.volumeId, 'whole', { detachedSnapshots: 'true' }));
    const different = await Promise.allSettled([
      nfs.create('noted', { parameters: { note: 'ours' } }),
      theirs.create('noted', { parameters: { note: 'theirs' } }),
    ]);
    assert.deepEqual(different.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    for (const id of ['raced', 'cloned', 'copied', 'noted']) await both((storage) => storage.remove(`v:nfs/${id}`));
    for (const id of ['source@snap', 'source/whole']) await both((storage) => storage.removeSnapshot(`s:nfs/${id}`));
    await both((storage) => storage.remove(source.volumeId));
    await nothingStored();
  });

  const interrupted = async (interrupt: () => Promise<unknown>, heal: () => Promise<unknown>) => {
    await guest.run('touch /run/gate/closed; rm -f /run/gate/waiting');
    const made = nfs.create('interrupted');
    const refused = assert.rejects(made, (error: Error & { code: string }) => {
      assert.equal(error.code, 'UNAVAILABLE');
      assert.match(error.message, new RegExp(`${guest.address.replaceAll('.', '\\.')}.*connection was lost`));
      return true;
    });
    await guest.run('until [ -e /run/gate/waiting ]; do sleep 0.05; done');
    await interrupt();
    await refused;
    // What had been begun is not done by anybody afterwards.
    await guest.run(`for _ in {1..200}; do pgrep -f 'sbin/[g]ate' >/dev/null || exit 0; sleep 0.1; done; exit 1`);
    await heal();
    await guest.run('rm -f /run/gate/closed');
    await nothingStored();
    for (const giveUp = Date.now() + 60_000; ; ) {
      const volume = await nfs.create('interrupted').catch((error: Error & { code: string }) => {
        assert.equal(error.code, 'UNAVAILABLE');
        assert.ok(Date.now() < giveUp, error.message);
      });
      if (volume) break;
    }
    await nfs.remove('v:nfs/interrupted');
    await nothingStored();
  };

  test('the SSH server is killed in the middle of a command', async () => {
    await interrupted(
      () => guest.run(`kill -9 $(cat /run/sshd2.pid); ${killSessions}`),
      () => startSshd(),
    );
  });

  test('the network is gone for a while', async () => {
    await interrupted(
      () =>
        guest.run(`nft add table inet cut
          nft add chain inet cut in '{ type filter hook input priority 0; }'
          nft add rule inet cut in tcp dport 2222 drop
          nft add rule inet cut in tcp sport 2222 drop
          # The server, too, is to see that nobody is there: its keep-alive is slower than ours.
          sleep 30; ${killSessions}`),
      () => guest.run('nft delete table inet cut'),
    );
  });

  test('a pool that is full', async () => {
    const small = controllerClient(() => one, { connection: 'small' });
    await small.create('fits', { bytes: 16 * mib });
    await assert.rejects(small.create('large', { bytes: 1024 * mib }), { code: 'RESOURCE_EXHAUSTED' });
    await assert.rejects(small.expand('v:small/fits', 1024 * mib), { code: 'RESOURCE_EXHAUSTED' });
    assert.equal(await guest.run('zfs list -H -o name -r small/nfs/v'), 'small/nfs/v\nsmall/nfs/v/fits\n');
    await guest.run('zfs create small/rest; head -c 1G /dev/urandom >/small/rest/file 2>/dev/null || sync');
    await assert.rejects(small.create('tiny', { bytes: 1 * mib }), { code: 'RESOURCE_EXHAUSTED' });
    await small.remove('v:small/tiny');
    await small.remove('v:small/fits');
    assert.equal(await guest.run('zfs list -H -o name -r small/nfs/v'), 'small/nfs/v\n');
    await guest.run('zfs destroy -r small/rest');
  });

  test('a volume that somebody on the server holds is gone for everybody, and destroyed when it can be', async () => {
    const held = await nfs.create('held');
    const node = nfs.onNode(held);
    await node.stage();
    await guest.run(`echo here >${node.staging}/file`);
    await node.unstage();
    // As its NFS server does for a while, only for longer.
    await guest.run(`cd /tank/nfs/v/held
      setsid -f sh -c 'echo $$ >/run/holder; exec sleep 1000' >/dev/null 2>&1 </dev/null
      until [ -s /run/holder ]; do sleep 0.1; done`);
    await nfs.remove(held.volumeId);
    await nothingStored();
    assert.match(await guest.run('zfs list -H -o name -r tank/nfs/v'), /trash:held/);
    const again = await nfs.create('held');
    const second = nfs.onNode(again);
    await second.stage();
    assert.equal(await guest.run(`ls ${second.staging}`), '');
    await second.unstage();
    await nfs.remove(again.volumeId);
    await guest.run('kill $(cat /run/holder); rm /run/holder');
    // Nobody has to ask for it.
    for (const giveUp = Date.now() + 180_000; ; await setTimeout(1000)) {
      if (!(await guest.run('zfs list -H -o name -r tank/nfs/v')).includes('trash:')) break;
      assert.ok(Date.now() < giveUp);
    }
    await nothingStored();
  });

  test('volumes with clones go where the connection says so', async () => {
    const { volumeId } = await iscsi.create('origin');
    // As it is made by the clock: the same name everywhere.
    await guest.run('zfs snapshot tank/iscsi/v/origin@hourly');
    const clone = await iscsi.create('clone', { volume: volumeId });
    const second = await iscsi.create('second', { volume: volumeId });
    const third = await iscsi.create('third', { volume: clone.volumeId });
    // The blocks of a clone are those of its origin, whatever the class says.
    const odd = { volume: volumeId, bytes: 64 * 2 ** 20 + 1, parameters: { zvolBlocksize: '8K' } };
    const { capacityBytes, volumeId: oddId } = await iscsi.create('odd', odd);
    assert.equal(capacityBytes, 64 * 2 ** 20 + 16 * 2 ** 10);
    assert.equal((await iscsi.create('odd', odd)).capacityBytes, capacityBytes);
    await iscsi.remove(oddId);
    await guest.run('zfs snapshot tank/iscsi/v/clone@hourly tank/iscsi/v/second@hourly tank/iscsi/v/third@hourly');
    await iscsi.remove(volumeId);
    await iscsi.remove(volumeId);
    for (const { volumeId: id } of [clone, second, third]) {
      const { status } = await iscsi.get(id);
      assert.equal(status?.volumeCondition?.abnormal, false, status?.volumeCondition?.message);
    }
    for (const { volumeId: id } of [clone, third, second]) await iscsi.remove(id);
    await nothingStored();
  });

  test('copies below an encrypted dataset', async () => {
    const secret = controllerClient(() => one, { connection: 'secret' });
    await guest.run(`set -e; head -c 32 /dev/urandom >/run/secret
      zfs create -o encryption=on -o keyformat=raw -o keylocation=file:///run/secret -o compression=on tank/secret`);
    const { volumeId } = await secret.create('plain');
    // So small a file is embedded in the block that points to it.
    await guest.run('echo kept >/tank/secret/nfs/v/plain/small; zpool sync tank');
    const { snapshotId } = await secret.snapshot(volumeId, 'apart', { detachedSnapshots: 'true' });
    const copy = await secret.create('copy', {
      snapshot: snapshotId,
      parameters: { detachedVolumesFromSnapshots: 'true' },
    });
    assert.equal(await guest.run('cat /tank/secret/nfs/v/copy/small'), 'kept\n');
    for (const id of [copy.volumeId, volumeId]) await secret.remove(id);
    await secret.removeSnapshot(snapshotId);
    await guest.run('zfs destroy -r tank/secret');
    await nothingStored();
  });

  test('a pool that is suspended', async () => {
    const sick = controllerClient(() => one, { connection: 'sick' });
    await sick.create('before');
    await guest.run(`dmsetup suspend --noflush sick; dmsetup load sick --table "0 $((512 * 2048)) error"; dmsetup resume sick
      (zfs set org.example:touch=1 sick || true) >/dev/null 2>&1 </dev/null &
      for _ in {1..300}; do [ "$(zpool list -H -o health sick)" = SUSPENDED ] && exit; sleep 0.1; done; exit 1`);
    await assert.rejects(sick.create('during'), { code: 'UNAVAILABLE' });
    await assert.rejects(sick.get('v:sick/before'), { code: 'UNAVAILABLE', message: /the pool sick is suspended/ });
    // Others are not concerned.
    await iscsi.create('elsewhere');
    await iscsi.remove('v:iscsi/elsewhere');
    await guest.run(`dmsetup suspend --noflush sick
      dmsetup load sick --table "0 $((512 * 2048)) linear /dev/ubdc 0"; dmsetup resume sick; zpool clear sick`);
    await sick.create('during');
    for (const id of ['before', 'during']) await sick.remove(`v:sick/${id}`);
  });
});
