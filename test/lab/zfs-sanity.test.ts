/** csi-sanity with every driver of the ZFS family: on real ZFS, over real SSH, all of them connections of one proxy. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { installSanity, runSanity } from './sanity.ts';
import { nasConnection, nasDrivers, nasProxy, smbSecrets, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

describe('csi-sanity on ZFS', { skip: noGuests, timeout: 1_190_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfssanity');
    await startZfsNas(guest);
    await installSanity(guest);
  });
  after(() => guest?.down());

  async function check(driver: string, parameters: Readonly<Record<string, string>>) {
    const secrets = driver === 'smb' ? smbSecrets : {};
    const run = { socket: '/run/switchboard/main/csi.sock', parameters, secrets, volumeBytes: 16 * 2 ** 20 };
    const specs = await runSanity(guest, run);
    assert.deepEqual(
      specs.filter(({ state }) => state === 'failed').map((spec) => `${spec.name}: ${spec.message}`),
      [],
    );
    assert.ok(specs.filter(({ state }) => state === 'passed').length > 60);
    await assertNothingLeft(guest, server);
    assert.deepEqual(await storedThings(guest), []);
  }

  test('through the proxy', async (t) => {
    server = await startSwitchboard(guest, nasProxy(guest));
    for (const driver of nasDrivers) await t.test(driver, () => check(driver, { connection: driver }));
    assert.equal(await server.stop(), 0);
  });

  test('nfs by itself', async () => {
    server = await startSwitchboard(guest, { config: nasConnection(guest, 'nfs') });
    await check('nfs', {});
    assert.equal(await server.stop(), 0);
  });
});
