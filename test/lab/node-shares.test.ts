/** Volumes on real NFS and SMB servers, as a node has them. */
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { lifecycle } from './lifecycle.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { startSmbServer } from './services/smb-server.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

describe('shares', { skip: noGuests, timeout: 300_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('shares');
    await startNfsServer(guest);
    await exportFolder(guest, '/srv/nfs');
    await startSmbServer(guest, { files: '/srv/smb' }, { user: 'clerk', password: 'p,w "4' });
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());

  const nfs = (address: string) => ({ node_attach_driver: 'nfs', server: address, share: '/srv/nfs' });
  const smb = (address: string) => ({ node_attach_driver: 'smb', server: address, share: 'files' });
  const account = { mount_flags: 'username=clerk,password=p,,w "4' };
  const rows = {
    'NFS 3': () => ({ context: nfs(guest.address), mountFlags: ['vers=3'] }),
    'NFS 4.2': () => ({ context: nfs(guest.address), mountFlags: ['vers=4.2'] }),
    'NFS 4.2 by IPv6': () => ({ context: nfs(guest.addressV6), mountFlags: ['vers=4.2'] }),
    'NFS by name': () => ({ context: nfs('shares') }),
    SMB: () => ({ context: smb(guest.address), secrets: account }),
    'SMB by IPv6': () => ({ context: smb(guest.addressV6), secrets: account }),
  };
  for (const [name, facts] of Object.entries(rows)) {
    test(name, () => lifecycle(guest, server, { id: name.replaceAll(/\W+/g, '-'), ...facts() }));
  }
});
