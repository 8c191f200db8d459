/** csi-sanity with every driver of the ZFS family: on real ZFS, over real SSH, all of them connections of one proxy. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { assertSane } from './nas-sanity.ts';
import { installSanity } from './sanity.ts';
import { nasDrivers, nasProxy, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

describe('csi-sanity on ZFS, through the proxy', { skip: noGuests, timeout: 1_790_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfssanity');
    await startZfsNas(guest);
    await installSanity(guest);
    server = await startSwitchboard(guest, nasProxy(guest));
  });
  after(() => guest?.down());

  // One after the other: the proxy lists the volumes of all of them, and csi-sanity expects that nobody else makes any.
  for (const driver of nasDrivers) {
    test(driver, async () => {
      await assertSane(guest, driver, 'main', { connection: driver });
      await assertNothingLeft(guest, server);
      assert.deepEqual(await storedThings(guest), []);
    });
  }

  test('it ends well', async () => {
    assert.equal(await server.stop(), 0);
  });
});
