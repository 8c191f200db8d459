/** Devices that hold something, targets that carry several volumes, and a node without space, on a real iSCSI target and a real NVMe target. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { type NodeVolume, nodeVolume } from './node-volume.ts';
import { createBackingFile, createPool } from './services/backing.ts';
import { createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { createNvmePort, createNvmeSubsystem, startNvmeHost } from './services/nvme-subsystem.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const iqn = 'iqn.2026-01.org.lab:faults';
const nqn = 'nqn.2026-01.org.lab:faults';

/** How each device comes to hold what nobody may lose, by a script for its backing file `$file`. */
const contents = {
  'data at its beginning': 'dd if=/dev/urandom of=$file bs=1M count=1 conv=notrunc status=none',
  'data at its end': 'dd if=/dev/urandom of=$file bs=1M seek=63 count=1 conv=notrunc status=none',
  'text alone': 'echo "the only copy" | dd of=$file conv=notrunc status=none',
  'a GPT': 'echo ",,L" | sfdisk -q -X gpt $file',
  'an MBR': 'echo ",,L" | sfdisk -q -X dos $file',
  'an empty GPT': 'echo label: gpt | sfdisk -q $file',
  'ZFS labels': 'zpool create -m none faults $file && zpool export faults',
  'only the last two ZFS labels':
    'zpool create -m none faults $file && zpool export faults && dd if=/dev/zero of=$file bs=1K count=1024 conv=notrunc status=none',
  'an LVM volume': 'modprobe loop; pvcreate -qy $(losetup -f --show $file) >/dev/null; losetup -D',
  swap: 'mkswap -q $file',
};

describe('devices', { skip: noGuests, timeout: 600_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  const files: string[] = [];
  const iscsi = (id: string, lun: number, access = 'ext4') =>
    nodeVolume(() => server, {
      id,
      access,
      context: { node_attach_driver: 'iscsi', portal: `${guest.address}:3260`, iqn, lun: String(lun) },
    });
  const nvme = (id: string, nsid: number, access = 'ext4') =>
    nodeVolume(() => server, {
      id,
      access,
      context: { node_attach_driver: 'nvmeof', transport: `tcp://${guest.address}:4420`, nqn, nsid: String(nsid) },
    });

  before(async () => {
    guest = await boot('devices');
    await createPool(guest);
    await startInitiator(guest);
    await startNvmeHost(guest);
    // Both the file behind a foreign device and what the node sees of it are looked at: the device cannot be a zvol.
    for (const [index, script] of Object.values(contents).entries()) {
      const file = await createBackingFile(guest, `foreign-${index}`, 64 * mib);
      await guest.run(`set -e; file=${file}; ${script}`);
      files.push(file);
    }
    for (const name of ['first', 'second']) files.push(await createBackingFile(guest, name, 64 * mib));
    await createIscsiTarget(guest, { iqn, portals: [`${guest.address}:3260`], luns: { ...files } });
    const spaces = [];
    for (const name of ['third', 'fourth']) spaces.push(await createBackingFile(guest, name, 64 * mib));
    await createNvmePort(guest, 1, guest.address, 4420);
    await createNvmeSubsystem(guest, { nqn, ports: [1], namespaces: { 1: spaces[0] ?? '', 2: spaces[1] ?? '' } });
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());
  afterEach(() => assertNothingLeft(guest, server));

  for (const [index, what] of Object.keys(contents).entries()) {
    test(`a device with ${what} is not formatted`, async () => {
      const sum = () => guest.run(`sha256sum ${files[index]}`);
      const before = await sum();
      const volume = iscsi(`foreign-${index}`, index, index % 2 === 0 ? 'ext4' : 'xfs');
      try {
        await assert.rejects(volume.stage(), { code: 'FAILED_PRECONDITION', message: /refusing to format or mount/ });
      } finally {
        await volume.unstage();
      }
      assert.equal(await sum(), before);
    });
  }

  const pairs = {
    'iSCSI target': () => [iscsi('one', files.length - 2), iscsi('two', files.length - 1)] as const,
    'NVMe subsystem': () => [nvme('one', 1), nvme('two', 2)] as const,
  };
  for (const [what, pair] of Object.entries(pairs)) {
    test(`two volumes of one ${what} leave each other alone`, async () => {
      const [one, two] = pair();
      await Promise.all([one.stage(), two.stage()]);
      await guest.run(`echo one >${one.staging}/name; echo two >${two.staging}/name; sync`);
      const works = async (volume: NodeVolume, name: string) => {
        await guest.run(`echo 3 >/proc/sys/vm/drop_caches; touch ${volume.staging}/new; sync -f ${volume.staging}`);
        assert.equal(await guest.run(`cat ${volume.staging}/name`), `${name}\n`);
      };
      await one.unstage();
      await works(two, 'two');
      await one.stage();
      await works(one, 'one');
      await two.unstage();
      await works(one, 'one');
      await Promise.all([one.unstage(), two.stage()]);
      await works(two, 'two');
      await two.unstage();
    });
  }

  test('a namespace that somebody has open keeps its subsystem connected', async () => {
    const [one] = pairs['NVMe subsystem']();
    await one.stage();
    const pid = await guest.run(`set -e; disk=/dev/$(grep -lx 2 /sys/block/nvme?n?/nsid | cut -d/ -f4); test -b $disk
      (exec 3<>$disk; touch /run/is-open; exec setsid sleep 1000) >/dev/null 2>&1 </dev/null & echo $!
      until [ -e /run/is-open ]; do sleep 0.05; done; rm /run/is-open`);
    await one.unstage();
    assert.equal(await guest.run('ls /sys/class/nvme | wc -l'), '1\n');
    const opened = `/proc/${pid.trim()}/fd/3`;
    await guest.run(`set -e; test -e ${opened}; kill ${pid.trim()}; while [ -e ${opened} ]; do sleep 0.05; done`);
    await one.stage();
    await one.unstage();
  });

  test('where no record can be kept, volumes come and go all the same, and the log warns', async () => {
    const [one] = pairs['iSCSI target']();
    await server.stop();
    const state = '/var/lib/switchboard-full';
    await guest.run(`mkdir -p ${state}; mount -t tmpfs -o size=64k tmpfs ${state}
      dd if=/dev/zero of=${state}/filler bs=4K status=none || true`);
    server = await startSwitchboard(guest, { env: { SWITCHBOARD_STATE_DIR: state } });
    const warned = server.logged(/^no record of staged volumes can be kept/);
    await one.stage();
    await warned;
    await one.unstage();
    await assertNothingLeft(guest, server);
    await server.stop();
    await guest.run(`umount ${state}`);
    server = await startSwitchboard(guest);
  });

  test('a volume without space left says so, and loses nothing', async () => {
    const [one] = pairs['NVMe subsystem']();
    await one.stage();
    await one.publish('rw');
    await guest.run(`echo kept >${one.target('rw')}/kept; sync`);
    await guest.run(`dd if=/dev/zero of=${one.target('rw')}/filler bs=1M status=none || true`);
    assert.equal((await one.stats('rw')).trouble, '');
    await one.unpublish('rw');
    await one.unstage();
    await one.stage();
    assert.equal(await guest.run(`cat ${one.staging}/kept; rm ${one.staging}/filler`), 'kept\n');
    await one.unstage();
  });
});
