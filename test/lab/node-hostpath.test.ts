/** Disks and folders of the node itself, as a node has them: what of the life of a volume does not depend on a network. */
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { lifecycle } from './lifecycle.ts';
import { createPool, createZvol, growBacking } from './services/backing.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;

describe('devices and folders of the node', { skip: noGuests, timeout: 200_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('local');
    await createPool(guest);
    await guest.run('mkdir -p /srv/folder');
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());

  test('a folder', () =>
    lifecycle(guest, server, { id: 'folder', context: { node_attach_driver: 'hostpath', path: '/srv/folder' } }));

  for (const access of ['ext3', 'ext4', 'xfs', 'btrfs', 'block']) {
    test(`${access} on a zvol`, async () => {
      const path = await createZvol(guest, access, 320 * mib);
      const grow = { toBytes: 640 * mib, grow: () => growBacking(guest, path, 640 * mib) };
      await lifecycle(guest, server, { id: access, access, context: { node_attach_driver: 'hostpath', path }, grow });
    });
  }
});
