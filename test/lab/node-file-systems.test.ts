/** What the kernel of this machine may not know, on real disks: every file system, whether it grows, whose files are, and a disk that vanishes. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { VolumeCapability } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { type NodeVolume, nodeVolume, type VolumeFacts } from './node-volume.ts';
import { createPool, createZvol, growBacking } from './services/backing.ts';
import { createIscsiTarget, removeIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const { Node } = services;

const config = `driver: node-manual
service:
  node:
    capabilities:
      rpc: [STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, EXPAND_VOLUME, VOLUME_CONDITION, VOLUME_MOUNT_GROUP]
`;

describe('file systems', { skip: noGuests, timeout: 400_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  const staged: NodeVolume[] = [];
  const targets: { iqn: string; portals: string[]; luns: Record<string, string> }[] = [];
  before(async () => {
    guest = await boot('filesystems');
    await createPool(guest);
    await startInitiator(guest);
    server = await startSwitchboard(guest, { config });
  });
  after(() => guest?.down());
  afterEach(async () => {
    // The next test is not to fail for what this one left.
    const volume = staged.pop();
    await volume?.unpublish('rw');
    await volume?.unstage();
    await assertNothingLeft(guest, server);
    for (const target of targets.splice(0)) await removeIscsiTarget(guest, target);
  });

  /** One that is taken away in the end, whatever happened to it. */
  function volumeOf(facts: VolumeFacts): NodeVolume {
    const volume = nodeVolume(() => server, facts);
    staged.push(volume);
    return volume;
  }

  async function makeDisk(id: string, bytes: number) {
    const path = await createZvol(guest, id, bytes);
    const target = { iqn: `iqn.2026-01.org.lab:${id}`, portals: [`${guest.address}:3260`], luns: { 0: path } };
    targets.push(target);
    await createIscsiTarget(guest, target);
    const context = { node_attach_driver: 'iscsi', portal: target.portals[0] ?? '', iqn: target.iqn, lun: '0' };
    return { path, context };
  }

  for (const [access, grows] of [
    ['ext2', true],
    ['ntfs', true],
    ['vfat', false],
    ['exfat', false],
  ] as const) {
    test(`${access} keeps what is written, and its group; it ${grows ? 'grows when it is staged next' : 'does not grow'}, and says so`, async () => {
      const { path, context } = await makeDisk(`life-${access}`, 128 * mib);
      const volume = volumeOf({ id: access, access, context, group: '4321' });
      await volume.stage();
      await volume.publish('rw');
      assert.equal(await guest.run(`stat -c %g ${volume.target('rw')}`), access === 'ext2' ? '0\n' : '4321\n');
      await guest.run(`head -c 3M /dev/urandom >/run/data; cp /run/data ${volume.target('rw')}/kept`);
      await growBacking(guest, path, 320 * mib);
      const message = grows ? /grows only while it is not mounted/ : /cannot grow/;
      const refused = { code: 'FAILED_PRECONDITION', message };
      await assert.rejects(volume.expand(320 * mib), refused);
      const { totalBytes } = await volume.stats('rw');
      await volume.unpublish('rw');
      await volume.unstage();

      for (let round = 0; round < 2; round++) {
        await volume.stage();
        await volume.publish('rw');
        await guest.run(`cmp /run/data ${volume.target('rw')}/kept`);
        const now = await volume.stats('rw');
        assert.equal(now.trouble, '');
        if (grows) {
          await volume.expand(320 * mib);
          assert.ok(now.totalBytes > 280 * mib, `${totalBytes} → ${now.totalBytes}`);
        } else {
          await assert.rejects(volume.expand(320 * mib), refused);
          assert.equal(now.totalBytes, totalBytes);
        }
        await volume.unpublish('rw');
        await volume.unstage();
      }
    });
  }

  for (const access of ['ext4', 'btrfs']) {
    test(`${access}: a disk that vanishes is an abnormal condition, and what was on it is there when it is back`, async () => {
      const { context } = await makeDisk(`gone-${access}`, 320 * mib);
      const volume = volumeOf({ id: access, access, context });
      await volume.stage();
      await volume.publish('rw');
      await guest.run(`echo kept >${volume.target('rw')}/kept; sync -f ${volume.target('rw')}`);
      assert.equal((await volume.stats('rw')).trouble, '');
      await guest.run('for disk in /sys/block/sd*; do echo 1 >$disk/device/delete; done');
      assert.match((await volume.stats('rw')).trouble, /is gone/);
      await volume.unpublish('rw');
      await volume.unstage();
      await assertNothingLeft(guest, server);
      await volume.stage();
      assert.equal(await guest.run(`cat ${volume.staging}/kept`), 'kept\n');
      await volume.unstage();
    });
  }

  test('several nodes cannot write to the file system of one disk', async () => {
    const { context } = await makeDisk('shared', 64 * mib);
    const { MULTI_NODE_MULTI_WRITER: mode } = VolumeCapability.AccessMode.Mode;
    const volumeCapability = { mount: { fsType: 'ext4' }, accessMode: { mode } };
    const request = { volumeId: 'shared', volumeContext: context, volumeCapability };
    const stage = server.call(Node.NodeStageVolume, { ...request, stagingTargetPath: '/var/lib/lab/shared/staging' });
    await assert.rejects(stage, {
      code: 'INVALID_ARGUMENT',
      message: /MULTI_NODE_MULTI_WRITER is not among the accepted/,
    });
    await assertNothingLeft(guest, server);
  });
});
