/** Volumes of every driver of the ZFS family from their creation to their end, nodes included. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type * as csi from '../../src/generated/csi.js';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { nasConnection, nasDrivers, nasProxy, smbSecrets, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;

describe('volumes on ZFS', { skip: noGuests, timeout: 590_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfslife');
    await startZfsNas(guest);
    server = await startSwitchboard(guest, nasProxy(guest));
  });
  after(() => guest?.down());

  const fsTypes = { nfs: 'nfs', smb: 'cifs', iscsi: 'ext4', nvmeof: 'ext4', dataset: 'zfs', zvol: 'ext4' } as const;

  for (const driver of nasDrivers) {
    test(driver, async () => {
      const options = { connection: driver, access: fsTypes[driver], secrets: driver === 'smb' ? smbSecrets : {} };
      const { create, remove, expand, snapshot, removeSnapshot, get, list, onNode } = controllerClient(
        () => server,
        options,
      );
      const sizeOf = driver === 'nfs' || driver === 'smb' || driver === 'dataset' ? 64 * mib : 64 * mib;
      const isDisk = fsTypes[driver] === 'ext4';
      const parameters = isDisk ? { formatOptions: '-L "of the class"' } : {};
      const first = await create('first', { parameters });
      assert.deepEqual(await create('first', { parameters }), first);
      assert.equal(first.capacityBytes, sizeOf);
      const node = onNode(first);
      const file = `${node.target('rw')}/data`;
      const read = async (volume: csi.Volume) => {
        const other = onNode(volume);
        await other.stage();
        await other.publish('r');
        const text = await guest.run(`cat ${other.target('r')}/data`);
        await other.unpublish('r');
        await other.unstage();
        return text;
      };
      await node.stage();
      await node.publish('rw');
      const label = `blkid -p -o value -s LABEL $(findmnt -n -o SOURCE ${node.staging})`;
      if (isDisk) assert.equal(await guest.run(label), 'of the class\n');
      await guest.run(`echo then >${file}; sync -f ${file}`);
      const attached = await snapshot(first.volumeId, 'snap-a');
      assert.deepEqual(await snapshot(first.volumeId, 'snap-a'), attached);
      const detached = await snapshot(first.volumeId, 'snap-d', { detachedSnapshots: 'true' });
      assert.deepEqual(await snapshot(first.volumeId, 'snap-d', { detachedSnapshots: 'true' }), detached);
      await guest.run(`echo now >${file}; sync -f ${file}`);

      const snapshots = { detachedVolumesFromSnapshots: 'true' };
      const volumes = { detachedVolumesFromVolumes: 'true' };
      const made: readonly (readonly [csi.Volume, string])[] = [
        [await create('restored', { snapshot: attached.snapshotId }), 'then\n'],
        [await create('copied', { snapshot: attached.snapshotId, parameters: snapshots, bytes: 96 * mib }), 'then\n'],
        [await create('revived', { snapshot: detached.snapshotId }), 'then\n'],
        [await create('cloned', { volume: first.volumeId, bytes: 96 * mib }), 'now\n'],
        [await create('doubled', { volume: first.volumeId, parameters: volumes }), 'now\n'],
      ];
      for (const [volume, text] of made) {
        assert.equal(await read(volume), text, volume.volumeId);
        const { status } = await get(volume.volumeId);
        assert.equal(status?.volumeCondition?.abnormal, false, status?.volumeCondition?.message);
      }
      assert.equal((await list()).length, 6);

      const before = await node.stats('rw');
      const grown = await expand(first.volumeId, 160 * mib);
      assert.equal(grown.capacityBytes, 160 * mib);
      if (grown.nodeExpansionRequired) await node.expand(160 * mib);
      const after = await node.stats('rw');
      assert.ok(after.totalBytes > 2 * before.totalBytes, `${before.totalBytes} → ${after.totalBytes}`);
      assert.equal(await guest.run(`cat ${file}`), 'now\n');

      // Refused before anything is changed: it can still be used.
      await assert.rejects(remove(first.volumeId), { code: 'FAILED_PRECONDITION' });
      await guest.run(`echo more >>${file}; sync -f ${file}`);
      await node.unpublish('rw');
      await node.unstage();
      assert.equal(await read(first), 'now\nmore\n');

      await removeSnapshot(attached.snapshotId);
      for (const [{ volumeId }] of made) {
        await remove(volumeId);
        await remove(volumeId);
      }
      await removeSnapshot(detached.snapshotId);
      await removeSnapshot(detached.snapshotId);
      await remove(first.volumeId);
      await assertNothingLeft(guest, server);
      assert.deepEqual(await storedThings(guest), []);
    });
  }

  test('iscsi by targetcli', async () => {
    const config = nasConnection(guest, 'iscsi', { shareStrategy: 'targetCli' });
    const single = await startSwitchboard(guest, { config, name: 'targetcli' });
    const { create, remove, onNode } = controllerClient(() => single, { access: 'ext4' });
    const made = await Promise.all(['one', 'two'].map((name) => create(name)));
    for (const volume of made) {
      await onNode(volume).stage();
      await onNode(volume).unstage();
    }
    await Promise.all(made.map(({ volumeId }) => remove(volumeId)));
    assert.equal(await single.stop(), 0);
    await assertNothingLeft(guest);
    assert.deepEqual(await storedThings(guest), []);
  });
});
