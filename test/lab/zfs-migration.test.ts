/** Volumes that democratic-csi made, in the hands of Switchboard. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { layPeerVolumes, peerContext, peerRoot } from './services/peer-layout.ts';
import {
  type NasDriver,
  nasConnection,
  nasDrivers,
  smbSecrets,
  startZfsNas,
  storedThings,
} from './services/zfs-nas.ts';
import { startSwitchboard } from './switchboard.ts';

const gib = 2 ** 30;
const fsTypes = { nfs: 'nfs', smb: 'cifs', iscsi: 'ext4', nvmeof: 'ext4', dataset: 'zfs', zvol: 'ext4' } as const;
const ids = ['pvc-aaaa', 'pvc-bbbb', 'pvc-cccc', 'pvc-dddd', 'pvc-eeee'];
const snapshots = { detachedVolumesFromSnapshots: 'true' };

describe('volumes that democratic-csi made', { skip: noGuests, timeout: 590_000 }, () => {
  let guest: Guest;
  before(async () => {
    guest = await boot('zfsmigration');
    await startZfsNas(guest);
  });
  after(() => guest?.down());

  const contextOf = (driver: NasDriver, id: string) => {
    const texts = Object.entries(peerContext(guest, driver, id)).map(([key, value]) => [key, String(value)]);
    const where = driver === 'dataset' || driver === 'zvol' ? 'local' : 'generic';
    return { ...Object.fromEntries(texts), provisioner_driver: `zfs-${where}-${driver}` };
  };

  for (const driver of nasDrivers) {
    test(driver, async () => {
      await layPeerVolumes(guest, driver);
      const config = nasConnection(guest, driver, { root: peerRoot(driver), shareStrategy: 'targetCli' });
      const server = await startSwitchboard(guest, { config, name: driver });
      const storage = controllerClient(() => server, {
        access: fsTypes[driver],
        secrets: driver === 'smb' ? smbSecrets : {},
      });
      const { create, remove, removeSnapshot, onNode } = storage;
      const entries = await storage.list();
      assert.deepEqual(
        entries.map(({ volume }) => [volume?.volumeId, volume?.capacityBytes, volume?.volumeContext]),
        ids.map((id) => [id, gib, contextOf(driver, id)]),
      );
      for (const { volume, status } of entries) {
        assert.equal(
          status?.volumeCondition?.abnormal,
          false,
          `${volume?.volumeId}: ${status?.volumeCondition?.message}`,
        );
      }
      const [first, second] = entries.map(({ volume }) => volume);
      assert.ok(first && second);
      // The orchestrator asks again for what it has.
      const parameters = { ns: 'demo' };
      assert.deepEqual(await create('pvc-aaaa', { bytes: gib, parameters }), first);
      assert.deepEqual(await create('pvc-bbbb', { bytes: gib, parameters, snapshot: 'pvc-aaaa@snap-1111' }), second);
      await assert.rejects(create('pvc-aaaa', { bytes: 2 * gib, parameters }), { code: 'ALREADY_EXISTS' });
      assert.equal((await create('pvc-half', { bytes: gib, parameters })).capacityBytes, gib);
      const { confirmed } = await storage.validate('pvc-aaaa', first.volumeContext);
      assert.ok(confirmed);

      assert.deepEqual(
        (await storage.snapshots('pvc-aaaa')).map(({ snapshotId }) => snapshotId),
        ['pvc-aaaa/snap-2222', 'pvc-aaaa@snap-1111'],
      );
      await storage.snapshot('pvc-aaaa', 'snap-1111');
      await storage.snapshot('pvc-aaaa', 'snap-3333');

      const node = onNode(first);
      await node.stage();
      await node.publish('rw');
      const { nodeExpansionRequired } = await storage.expand('pvc-aaaa', 2 * gib);
      if (nodeExpansionRequired) await node.expand(2 * gib);
      const { totalBytes } = await node.stats('rw');
      assert.ok(totalBytes > 1.8 * gib, `${totalBytes}`);
      assert.equal(await guest.run(`cat ${node.target('rw')}/data`), 'now\n');
      await guest.run(`echo later >${node.target('rw')}/data`);
      await node.unpublish('rw');
      await node.unstage();

      const made = [
        ['pvc-bbbb', 'then', second],
        ['pvc-new1', 'then', await create('pvc-new1', { bytes: gib, snapshot: 'pvc-aaaa@snap-1111' })],
        [
          'pvc-new2',
          'then',
          await create('pvc-new2', { bytes: gib, snapshot: 'pvc-aaaa/snap-2222', parameters: snapshots }),
        ],
        ['pvc-new3', 'later', await create('pvc-new3', { bytes: 2 * gib, volume: 'pvc-aaaa' })],
      ] as const;
      for (const [id, text, volume] of made) {
        const other = onNode(volume);
        await other.stage();
        await other.publish('r');
        assert.equal(await guest.run(`cat ${other.target('r')}/data`), `${text}\n`, id);
        await other.unpublish('r');
        await other.unstage();
      }

      await assert.rejects(remove('pvc-aaaa'), { code: 'FAILED_PRECONDITION' });
      for (const id of ['pvc-new1', 'pvc-new2', 'pvc-new3', 'pvc-half', ...ids.slice(1)]) await remove(id);
      for (const id of ['pvc-aaaa@snap-1111', 'pvc-aaaa/snap-2222', 'pvc-aaaa@snap-3333']) await removeSnapshot(id);
      await remove('pvc-aaaa');
      assert.equal(await server.stop(), 0);
      await assertNothingLeft(guest);
      assert.deepEqual(await storedThings(guest), []);
    });
  }
});
