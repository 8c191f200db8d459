/** Accounts other than root: what `zfs allow` is enough for, that no less of it is, and what sudo is needed for. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { repository } from '../../scripts/lib/repository.ts';
import { services } from '../../src/generated/services.js';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { type NasDriver, nasConnection, nasKey, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const { Controller } = services;

/** What the example of the driver tells to grant. */
async function documentedPermissions(driver: 'iscsi' | 'nvmeof'): Promise<readonly string[]> {
  const text = await readFile(join(repository, `examples/connections/zfs-generic-${driver}.yaml`), 'utf8');
  const [, list = ''] = /^#\s+zfs allow csi ((?:[a-z]+,(?:\\\n#\s+)?)+[a-z]+) tank\/csi$/m.exec(text) ?? [];
  return list.split(/,(?:\\\n#\s+)?/).filter(Boolean);
}

describe('ZFS by an account other than root', { skip: noGuests, timeout: 1_190_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfsallow');
    await startZfsNas(guest);
    await guest.run(`set -e
      useradd --create-home --home-dir /var/lib/csi --password '*' csi
      install -d -m 0700 -o csi /var/lib/csi/.ssh; install -m 0600 -o csi ${nasKey}.pub /var/lib/csi/.ssh/authorized_keys
      zfs create tank/iscsi; zfs create tank/nfs
      printf 'csi ALL=(root) NOPASSWD: ALL\\n' >/etc/sudoers.d/csi`);
    const connection = (driver: NasDriver, zfs: readonly string[]) =>
      nasConnection(guest, driver, { zfs })
        .replace('username: root', 'username: csi')
        .replace('shareStrategyTargetCli:\n', 'shareStrategyTargetCli:\n    sudoEnabled: true\n');
    const files = {
      'connections/iscsi.yaml': connection('iscsi', ['deleteWithClones: promote']),
      'connections/nfs.yaml': connection('nfs', []),
      'connections/nfs-sudo.yaml': connection('nfs', ['cli: { sudoEnabled: true }']),
    };
    const config = 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/main/connections\n';
    server = await startSwitchboard(guest, { config, files });
  });
  after(() => guest?.down());

  /** Everything that a controller does. Ends with nothing stored. */
  async function live(connection: string): Promise<void> {
    const storage = controllerClient(() => server, { connection });
    const compression = { compression: 'lz4' };
    const first = await storage.create('first', { parameters: compression });
    assert.equal((await storage.expand(first.volumeId, 128 * mib)).capacityBytes, 128 * mib);
    const snapshot = await storage.snapshot(first.volumeId, 'snap');
    const whole = await storage.snapshot(first.volumeId, 'whole', { detachedSnapshots: 'true' });
    const copies = { detachedVolumesFromSnapshots: 'true', detachedVolumesFromVolumes: 'true' };
    const made = [
      await storage.create('restored', { snapshot: snapshot.snapshotId, bytes: 128 * mib }),
      await storage.create('copied', { snapshot: snapshot.snapshotId, bytes: 128 * mib, parameters: copies }),
      await storage.create('revived', { snapshot: whole.snapshotId, bytes: 128 * mib }),
      await storage.create('cloned', { volume: first.volumeId, bytes: 128 * mib }),
      await storage.create('doubled', { volume: first.volumeId, bytes: 128 * mib, parameters: copies }),
    ];
    assert.equal(
      (await storage.list()).filter(({ volume }) => volume?.volumeId.startsWith(`v:${connection}/`)).length,
      6,
    );
    assert.equal((await storage.snapshots(first.volumeId)).length, 2);
    const { status } = await storage.get(first.volumeId);
    assert.equal(status?.volumeCondition?.abnormal, false, status?.volumeCondition?.message);
    const { availableCapacity } = await server.call(Controller.GetCapacity, { parameters: { connection } });
    assert.ok(availableCapacity > 0);
    await storage.removeSnapshot(snapshot.snapshotId);
    // One of its clones takes over, where the connection has it so.
    const order = connection.startsWith('nfs') ? [...made, first] : [first, ...made];
    for (const { volumeId } of order) await storage.remove(volumeId);
    await storage.removeSnapshot(whole.snapshotId);
    assert.deepEqual(await storedThings(guest), []);
  }

  const permissions = documentedPermissions('iscsi');
  const allow = (permission: string) => guest.run(`zfs allow csi ${permission} tank/iscsi`);

  test('with the permissions that are documented, zvols live without sudo', async () => {
    assert.ok((await permissions).length > 5);
    assert.deepEqual(await documentedPermissions('nvmeof'), await permissions);
    await allow((await permissions).join());
    await live('iscsi');
  });

  test('without any one of the permissions something is refused, and done when it is granted', async () => {
    const storage = controllerClient(() => server, { connection: 'iscsi' });
    const { volumeId } = await storage.create('base');
    const { snapshotId } = await storage.snapshot(volumeId, 'snap');
    const remove = (name: string) => storage.remove(`v:iscsi/${name}`);
    const create = () => storage.create('new', { parameters: { compression: 'lz4' } });
    const clone = () => storage.create('new', { snapshot: snapshotId });
    const copy = () =>
      storage.create('new', { snapshot: snapshotId, parameters: { detachedVolumesFromSnapshots: 'true' } });
    const shoot = () => storage.snapshot(volumeId, 'whole', { detachedSnapshots: 'true' });
    const created = [create, () => remove('new')] as const;
    const copied = [copy, () => remove('new')] as const;
    /** What needs it, and what takes that back. */
    const needs: Readonly<Record<string, readonly [() => Promise<unknown>, () => Promise<unknown>]>> = {
      create: created,
      mount: created,
      userprop: created,
      refreservation: created,
      compression: created,
      volsize: [() => storage.expand(volumeId, 128 * mib), async () => {}],
      snapshot: [() => storage.snapshot(volumeId, 'other'), () => storage.removeSnapshot('s:iscsi/base@other')],
      clone: [clone, () => remove('new')],
      send: copied,
      receive: copied,
      rename: copied,
      canmount: [shoot, () => storage.removeSnapshot('s:iscsi/base/whole')],
      // The last: nothing but the clone is left.
      promote: [() => remove('base'), () => remove('clone')],
    };
    const refused = async (permission: string, call: () => Promise<unknown>) => {
      await guest.run(`zfs unallow csi ${permission} tank/iscsi`);
      await assert.rejects(call(), { message: /permission denied/i }, permission);
      await allow(permission);
      await call();
    };
    const tried = ['destroy', ...Object.keys(needs)];
    assert.deepEqual(tried.toSorted(), (await permissions).toSorted());
    await storage.create('doomed');
    await refused('destroy', () => remove('doomed'));
    for (const [permission, [call, undo]] of Object.entries(needs)) {
      if (permission === 'promote') {
        await storage.create('clone', { volume: volumeId, bytes: 128 * mib });
        await storage.removeSnapshot(snapshotId);
      }
      await refused(permission, call);
      await undo();
    }
    assert.deepEqual(await storedThings(guest), []);
  });

  test('file systems need sudo, whatever is granted', async () => {
    await guest.run(`zfs allow csi ${(await permissions).join()},share,quota,refquota,sharenfs tank/nfs`);
    const storage = controllerClient(() => server, { connection: 'nfs' });
    await assert.rejects(storage.create('new'), {
      code: 'FAILED_PRECONDITION',
      message: /cannot mount .*permission denied/i,
    });
    await storage.remove('v:nfs/new');
    assert.deepEqual(await storedThings(guest), []);
    await live('nfs-sudo');
  });
});
