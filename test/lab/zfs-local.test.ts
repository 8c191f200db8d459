/** Datasets and zvols of a node's own pool, on real ZFS. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { lifecycle } from './lifecycle.ts';
import { nodeVolume } from './node-volume.ts';
import { createPool, createZvol } from './services/backing.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;

describe('a pool of the node', { skip: noGuests, timeout: 300_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfslocal');
    await createPool(guest);
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());

  const contextOf = (name: string) => ({ node_attach_driver: 'zfs-local', zfs_asset_name: name });

  for (const access of ['ext4', 'xfs', 'block']) {
    test(`${access} on a zvol`, async () => {
      const name = `zvol-${access}`;
      await createZvol(guest, name, 320 * mib);
      const grow = async () => void (await guest.run(`zfs set volsize=${640 * mib} tank/${name}`));
      const context = contextOf(`tank/${name}`);
      await lifecycle(guest, server, { id: name, context, access, grow: { toBytes: 640 * mib, grow } });
    });
  }

  test('a dataset', async () => {
    await guest.run(`zfs create -o refquota=${200 * mib} tank/set`);
    const grow = async () => void (await guest.run(`zfs set refquota=${400 * mib} tank/set`));
    await lifecycle(guest, server, {
      id: 'dataset',
      context: contextOf('tank/set'),
      access: 'zfs',
      grow: { toBytes: 400 * mib, grow },
    });
    assert.equal(await guest.run('zfs get -H -o value mountpoint tank/set'), 'legacy\n');
  });

  test('a dataset with a space in its name, that had a mount point and files before', async () => {
    await guest.run('zfs create "tank/with space" && echo old >"/tank/with space/file"');
    const volume = nodeVolume(() => server, { id: 'space', context: contextOf('tank/with space') });
    await volume.stage();
    await volume.publish('rw');
    assert.equal(await guest.run(`cat ${volume.target('rw')}/file`), 'old\n');
    await volume.unpublish('rw');
    await volume.unstage();
    await assertNothingLeft(guest, server);
  });

  test('what is no volume is refused', async () => {
    await guest.run('zfs snapshot tank/set@one');
    const refused: readonly (readonly [string, string])[] = [
      ['tank/nothing', 'NOT_FOUND'],
      ['nothing/at-all', 'NOT_FOUND'],
      ['tank', 'FAILED_PRECONDITION'],
      ['tank/set@one', 'INVALID_ARGUMENT'],
      ['-o', 'INVALID_ARGUMENT'],
      ['../etc', 'INVALID_ARGUMENT'],
    ];
    for (const [name, code] of refused) {
      const volume = nodeVolume(() => server, { id: 'refused', context: contextOf(name) });
      await assert.rejects(volume.stage(), { code });
      await volume.unstage();
    }
    assert.equal(await guest.run('zfs get -H -o value mountpoint tank'), '/tank\n');
    await assertNothingLeft(guest, server);
  });
});
