/** The lab itself: a guest comes up with the program in it, loses its power and its network, and gets them back. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { startSwitchboard } from './switchboard.ts';

describe('a guest', { skip: noGuests, timeout: 120_000 }, () => {
  let guest: Guest;
  before(async () => {
    guest = await boot('guest');
  });
  after(() => guest?.down());

  test('runs the program, which answers from there', async () => {
    const server = await startSwitchboard(guest);
    const { ready } = await server.call(services.Identity.Probe, {});
    assert.notEqual(ready?.value, false);
    const { nodeId } = await server.call(services.Node.NodeGetInfo, {});
    assert.equal(nodeId, 'guest');
    assert.equal(await server.stop(), 0);
  });

  test('keeps its disks when it loses its power', async () => {
    await guest.run(
      'mkfs.ext4 -q /dev/ubdb && mount /dev/ubdb /mnt && echo kept >/mnt/file && sync && echo kept >/etc/kept',
    );
    await guest.run('sync');
    await guest.reboot();
    assert.equal(await guest.run('mount /dev/ubdb /mnt && cat /mnt/file /etc/kept'), 'kept\nkept\n');
    const server = await startSwitchboard(guest);
    await server.kill();
  });

  test('cannot be reached while its cable is out', async () => {
    const reach = () => guest.execInNetwork('timeout', '2', 'bash', '-c', `exec 3<>/dev/tcp/${guest.address}/22`);
    await reach();
    await guest.cut();
    await assert.rejects(reach());
    await guest.heal();
    await reach();
    await guest.run('true');
  });
});
