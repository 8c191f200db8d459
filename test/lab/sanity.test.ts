/** csi-sanity with volumes on real NFS and SMB servers, of one connection alone and through the proxy. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { installSanity, runSanity } from './sanity.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { startSmbServer } from './services/smb-server.ts';
import { startSwitchboard } from './switchboard.ts';

const account = { user: 'clerk', password: 'p,w4' };

const connections = {
  nfs: (address: string) => `driver: nfs-client
nfs:
  shareHost: ${address}
  shareBasePath: /srv/nfs
  controllerBasePath: /mnt/nfs
  controllerMount: auto
`,
  smb: (address: string) => `driver: smb-client
smb:
  shareHost: ${address}
  shareBasePath: files
  controllerBasePath: /mnt/smb
  controllerMount: auto
  controllerMountCredentials: { username: ${account.user}, password: '${account.password}' }
`,
};

const proxy = 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/main/connections\n';

describe('csi-sanity', { skip: noGuests, timeout: 590_000 }, () => {
  let guest: Guest;
  before(async () => {
    guest = await boot('sanity');
    await startNfsServer(guest);
    await exportFolder(guest, '/srv/nfs');
    await startSmbServer(guest, { files: '/srv/smb' }, account);
    await installSanity(guest);
  });
  after(() => guest?.down());

  for (const name of ['nfs', 'smb'] as const) {
    const secrets = name === 'smb' ? { mount_flags: `username=${account.user},password=p,,w4` } : {};
    for (const way of ['by itself', 'through the proxy']) {
      test(`${name}-client ${way}`, async () => {
        const files = Object.entries(connections).map(([key, text]) => [
          `connections/${key}.yaml`,
          text(guest.address),
        ]);
        const config = way === 'by itself' ? connections[name](guest.address) : proxy;
        const server = await startSwitchboard(guest, { config, files: Object.fromEntries(files) });
        const parameters: Record<string, string> = way === 'by itself' ? {} : { connection: name };
        const specs = await runSanity(guest, { socket: '/run/switchboard/main/csi.sock', parameters, secrets });
        assert.deepEqual(
          specs.filter(({ state }) => state === 'failed').map((spec) => `${spec.name}: ${spec.message}`),
          [],
        );
        assert.ok(specs.filter(({ state }) => state === 'passed').length > 50);
        assert.equal(await server.stop(), 0);
        await assertNothingLeft(guest);
        const kept = await guest.run('find /srv/nfs /srv/smb -mindepth 2 -not -path "*/.switchboard*"');
        assert.equal(kept, '');
      });
    }
  }
});
