/** csi-sanity with every driver of the ZFS family by itself: six servers of one connection each, at the same time on one pool. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { assertSane } from './nas-sanity.ts';
import { installSanity } from './sanity.ts';
import { nasConnection, nasDrivers, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { startSwitchboard } from './switchboard.ts';

describe('csi-sanity on ZFS, without a proxy', { skip: noGuests, timeout: 1_790_000 }, () => {
  let guest: Guest;
  before(async () => {
    guest = await boot('zfsdirect');
    await startZfsNas(guest);
    await installSanity(guest);
  });
  after(() => guest?.down());

  describe('at once', { concurrency: true }, () => {
    for (const driver of nasDrivers) {
      test(driver, async () => {
        const server = await startSwitchboard(guest, { config: nasConnection(guest, driver), name: driver });
        await assertSane(guest, driver, driver);
        assert.equal(await server.stop(), 0);
      });
    }
  });

  test('nothing is left', async () => {
    await assertNothingLeft(guest);
    assert.deepEqual(await storedThings(guest), []);
  });
});
