/** iSCSI where it goes wrong: shared targets, portals and daemons that die, disks that are others by now, administrators, several paths. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { lifecycle } from './lifecycle.ts';
import { type NodeVolume, nodeVolume } from './node-volume.ts';
import { createPool, createZvol, growBacking } from './services/backing.ts';
import { addLun, createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const iqn = 'iqn.2026-01.org.lab:shared';
const portal = '10.0.2.15:3260';
const secondPortal = '10.0.2.15:3261';

describe('iSCSI among others', { skip: noGuests, timeout: 600_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  const disks: string[] = [];
  before(async () => {
    guest = await boot('iscsimore');
    await createPool(guest);
    await startInitiator(guest);
    for (const name of ['a', 'b', 'c', 'd']) disks.push(await createZvol(guest, name, 64 * mib));
    const [first = '', second = ''] = disks;
    await createIscsiTarget(guest, { iqn, portals: [portal, secondPortal], luns: { 0: first, 300: second } });
    server = await startSwitchboard(guest);
  });
  afterEach(() => assertNothingLeft(guest, server));
  after(() => guest?.down());

  const volume = (id: string, context: Readonly<Record<string, string>> = {}, access = '', secrets = {}): NodeVolume =>
    nodeVolume(() => server, {
      id,
      access,
      secrets,
      context: { node_attach_driver: 'iscsi', portal, iqn, lun: '0', ...context },
    });
  const sessions = async () => (await guest.run('ls /sys/class/iscsi_session')).split('\n').filter(Boolean).length;
  const isWritable = async ({ staging }: NodeVolume, text: string) =>
    assert.equal(await guest.run(`echo ${text} >${staging}/file && sync && cat ${staging}/file`), `${text}\n`);

  test('volumes of one target have one session, which ends with the last of them', async () => {
    const [one, other] = [volume('one'), volume('other', { lun: '300' }, 'block')];
    await Promise.all([one.stage(), other.stage()]);
    assert.equal(await sessions(), 1);
    await one.unstage();
    assert.equal(await sessions(), 1);
    await guest.run(`dd if=${other.staging}/block_device of=/dev/null bs=1M count=1 iflag=direct status=none`);
    // Neither what this process knows nor any record says that the block volume is there, and nobody has it open.
    await server.kill();
    await guest.run('rm -r /var/lib/switchboard-main/staged');
    server = await startSwitchboard(guest);
    await one.stage();
    await one.unstage();
    await guest.run(`dd if=${other.staging}/block_device of=/dev/null bs=1M count=1 iflag=direct status=none`);
    await other.unstage();
  });

  test('volumes of one target come and go at the same time', async () => {
    const [one, other] = [volume('one'), volume('other', { lun: '300' })];
    await one.stage();
    for (let round = 0; round < 3; round++) {
      await Promise.all([one.unstage(), other.stage()]);
      await isWritable(other, `other-${round}`);
      await Promise.all([one.stage(), other.unstage()]);
      await isWritable(one, `one-${round}`);
    }
    await one.unstage();
  });

  test('secrets are in no process list and no log', async () => {
    const password = 'what-only-nodes-know';
    const target = {
      iqn: `${iqn}-chap`,
      portals: [portal],
      luns: { 0: disks[2] ?? '' },
      chap: { user: 'n', password },
    };
    await createIscsiTarget(guest, target);
    // Made of parts, so that the watcher does not see itself.
    const pattern =
      'w=what-only; w=$w-nodes-know; while [ ! -e /run/enough ]; do grep -las $w /proc/[0-9]*/cmdline; done';
    const seen = guest.run(`${pattern}; true`);
    const secrets = {
      'node-db.node.session.auth.username': 'n',
      'node-db.node.session.auth.password': password,
    };
    const one = volume('chap', { iqn: target.iqn }, '', secrets);
    await one.stage();
    // Nor the test.
    const files = "printf '%s%s\\n' what-only -nodes-know | grep -rlf - /etc/iscsi /var/lib/iscsi";
    const records = await guest.run(`stat -c '%a %U' $(${files})`);
    assert.equal(records, '600 root\n');
    const wrong = volume('wrong', { iqn: target.iqn }, '', {
      ...secrets,
      'node-db.node.session.auth.password': `not-${password}`,
    });
    await one.unstage();
    await assert.rejects(wrong.stage(), { code: 'UNAUTHENTICATED', message: /^(?!.*what-only)/s });
    await wrong.unstage();
    await guest.run('touch /run/enough');
    assert.equal(await seen, '');
    assert.ok(!JSON.stringify(server.log).includes(password));
    assert.equal(await guest.run(`${files} || true`), '');
  });

  test('without iscsid, calls fail soon, and go on when it is back', async () => {
    const one = volume('one');
    await guest.run('pkill -x iscsid; while pidof iscsid; do sleep 0.1; done');
    await assert.rejects(one.stage(), { code: 'FAILED_PRECONDITION', message: /iscsid/ });
    await guest.run('iscsid');
    await one.stage();
    await guest.run('pkill -x iscsid; while pidof iscsid; do sleep 0.1; done');
    await isWritable(one, 'alive');
    await assert.rejects(one.unstage(), { code: 'FAILED_PRECONDITION', message: /iscsid/ });
    assert.equal(await sessions(), 1);
    await guest.run('iscsid');
    await one.unstage();
  });

  test('a LUN that was replaced is not taken for what it was', async () => {
    const [one, other] = [volume('one'), volume('other', { lun: '7' })];
    await addLun(guest, iqn, 7, disks[3] ?? '');
    await one.stage();
    await guest.run('echo "- - 7" >/sys/class/scsi_host/$(ls /sys/class/iscsi_host)/scan; udevadm settle');
    const group = `/sys/kernel/config/target/iscsi/${iqn}/tpgt_1/lun/lun_7`;
    await guest.run(`rm ${group}/shared-7 && rmdir ${group} && rmdir /sys/kernel/config/target/core/*/shared-7`);
    await assert.rejects(other.stage(), { code: 'NOT_FOUND', message: /no LUN 7/ });
    await addLun(guest, iqn, 7, await createZvol(guest, 'e', 96 * mib));
    await other.stage();
    await other.publish('rw');
    assert.ok((await other.stats('rw')).totalBytes > 64 * mib);
    await other.unpublish('rw');
    await other.unstage();
    await one.unstage();
  });

  test('a session that the machine makes when it starts is used and left as it was', async () => {
    const node = `iscsiadm -m node -T ${iqn} -p ${portal}`;
    await guest.run(
      `set -e; ${node} -o new; ${node} -o update -n node.startup -v automatic; ${node} -l; udevadm settle`,
    );
    const one = volume('one');
    await one.stage();
    await one.unstage();
    assert.equal(await sessions(), 1);
    assert.match(await guest.run(node), /^node.startup = automatic$/m);
    await guest.run(`${node} -u; ${node} -o delete; udevadm settle`);
  });

  /** Opens a device of the guest for writing, as a virtual machine does. Gives how to close it. */
  const open = async (device: string) => {
    const pid = await guest.run(
      `(exec 3<>${device}; touch /run/is-open; exec setsid sleep 1000) >/dev/null 2>&1 </dev/null & echo $!
      until [ -e /run/is-open ]; do sleep 0.05; done; rm /run/is-open`,
    );
    const opened = `/proc/${pid.trim()}/fd/3`;
    return async () =>
      void (await guest.run(
        `set -e; test -e ${opened}; kill ${pid.trim()}; while [ -e ${opened} ]; do sleep 0.05; done`,
      ));
  };

  test('a session that an administrator made keeps the disk that a virtual machine has open, and its record', async () => {
    const node = `iscsiadm -m node -T ${iqn} -p ${portal}`;
    await guest.run(`set -e; ${node} -o new; ${node} -o update -n node.startup -v manual; ${node} -l; udevadm settle`);
    const disk = await guest.run("lsscsi | awk '!/:0\\]/ { print $NF }' | head -1");
    const close = await open(disk.trim());
    const one = volume('one');
    await one.stage();
    await one.unstage();
    assert.equal(await sessions(), 1);
    await guest.run(`dd if=${disk.trim()} of=/dev/null bs=4K count=1 iflag=direct status=none`);
    await close();
    // The record was not made for the volume.
    assert.match(await guest.run(`${node}; ${node} -u; ${node} -o delete; udevadm settle`), /node.startup = manual/);
  });

  test('a session of volumes stays while somebody has another of its disks open', async () => {
    const one = volume('one');
    await one.stage();
    await guest.run('echo "- - 300" >/sys/class/scsi_host/$(ls /sys/class/iscsi_host)/scan; udevadm settle');
    const disk = await guest.run("lsscsi | awk '!/:0\\]/ { print $NF }'");
    const close = await open(disk.trim());
    await one.unstage();
    assert.equal(await sessions(), 1);
    await close();
    await one.stage();
    await one.unstage();
    assert.equal(await sessions(), 0);
  });

  test('a block volume that is open by a device node of its own stays until it is closed', async () => {
    const one = volume('one', {}, 'block');
    await one.stage();
    await guest.run('mknod /run/node b $(cat /sys/block/sd*/dev | tr : " ")');
    const close = await open('/run/node');
    await assert.rejects(one.unstage(), { code: 'FAILED_PRECONDITION', message: /\((bash|sleep)\) has it open/ });
    assert.equal(await sessions(), 1);
    await close();
    await one.unstage();
    await guest.run('rm /run/node');
  });

  test('while the portal of a mounted disk is gone, the volume comes by no other way', async () => {
    await guest.run(
      `nft add table inet portals; nft add chain inet portals in '{ type filter hook input priority 0; }'`,
    );
    const several = { portals: secondPortal };
    // To find out soon.
    const soon = {
      'node-db.node.conn[0].timeo.noop_out_interval': '1',
      'node-db.node.conn[0].timeo.noop_out_timeout': '5',
    };
    const [one, other] = ['one', 'two'].map((folder) =>
      nodeVolume(() => server, {
        id: 'one',
        access: 'xfs',
        secrets: soon,
        folder,
        context: { node_attach_driver: 'iscsi', portal, iqn: `${iqn}-large`, lun: '0', ...several },
      }),
    ) as [NodeVolume, NodeVolume];
    const disk = await createZvol(guest, 'large', 320 * mib);
    await createIscsiTarget(guest, { iqn: `${iqn}-large`, portals: [portal, secondPortal], luns: { 0: disk } });
    await one.stage();
    await isWritable(one, 'kept');
    await guest.run(`nft add rule inet portals in tcp dport 3260 drop
      until grep -qv LOGGED_IN /sys/class/iscsi_session/*/state; do sleep 0.1; done`);
    await assert.rejects(other.stage(), { code: 'UNAVAILABLE', message: /is in use here as sd\w+, whose session/ });
    assert.equal(await sessions(), 1);
    await guest.run(`nft delete table inet portals
      until grep -q LOGGED_IN /sys/class/iscsi_session/*/state; do sleep 0.1; done`);
    await other.stage();
    await isWritable(other, 'both');
    assert.equal(await guest.run(`cat ${one.staging}/file; ls /sys/class/iscsi_session | wc -l`), 'both\n1\n');
    await Promise.all([one.unstage(), other.unstage()]);
  });

  test('where iscsiadm works in another root, its records are there', async () => {
    await server.stop();
    // This root's own records would be on another file system.
    await guest.run(`set -e; mkdir -p /mnt/root; mount --rbind / /mnt/root; mount --make-rprivate /mnt/root
      mount -t tmpfs tmpfs /var/lib/iscsi`);
    const env = { SWITCHBOARD_HOST_ROOT: '/mnt/root', ISCSIADM_HOST_STRATEGY: 'chroot' };
    server = await startSwitchboard(guest, { env });
    const one = volume('one');
    await one.stage();
    assert.match(await guest.run('find /mnt/root/var/lib/iscsi/nodes -type f'), /10\.0\.2\.15,3260/);
    await isWritable(one, 'rooted');
    await one.unstage();
    assert.equal(await guest.run('find /mnt/root/var/lib/iscsi/nodes -type f'), '');
    await server.stop();
    await guest.run('umount /var/lib/iscsi; umount -l /mnt/root');
    server = await startSwitchboard(guest);
  });

  test('portals by name, one that is gone, none at all', async () => {
    await guest.run('echo 10.0.2.15 nas.lab >>/etc/hosts');
    const named = volume('named', { portal: 'NAS.lab' });
    await named.stage();
    await isWritable(named, 'named');
    await named.unstage();
    const none = volume('none', { portal: '10.0.2.15:9', portals: '10.0.2.200' });
    await assert.rejects(none.stage(), { code: 'UNAVAILABLE', message: /10\.0\.2\.15:9: .*10\.0\.2\.200:3260: / });
    await none.unstage();
  });

  test('multipathd joins what portals there are; a path that dies harms nobody', async () => {
    await guest.run(`modprobe dm_multipath
      printf 'blacklist {\\n devnode "^(ubd|zd)"\\n}\\n' >/etc/multipath.conf
      multipathd; until multipathd show daemon | grep -q idle; do sleep 0.1; done
      nft add table inet lab; nft add chain inet lab in '{ type filter hook input priority 0; }'`);
    const several = { portals: secondPortal };
    const one = volume('one', several);
    await guest.run('nft add rule inet lab in tcp dport 3261 drop');
    await one.stage();
    assert.equal(await sessions(), 1);
    await guest.run('nft flush chain inet lab in');
    await one.stage();
    assert.equal(await sessions(), 2);
    await isWritable(one, 'both');
    await guest.run('nft add rule inet lab in tcp dport 3261 drop');
    await isWritable(one, 'one-left');
    await guest.run('nft flush chain inet lab in');
    await one.unstage();
    const path = disks[1] ?? '';
    const grow = { toBytes: 128 * mib, grow: () => growBacking(guest, path, 128 * mib) };
    const context = { node_attach_driver: 'iscsi', portal, portals: secondPortal, iqn, lun: '300' };
    await lifecycle(guest, server, { id: 'lun-300', context, grow });
    assert.equal(await guest.run('dmsetup ls --target multipath'), 'No devices found\n');
  });
});
