/** Connections of a real NFS server: volumes that exist already, and controllers that work on their own share and on no other. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../integration/server-under-test.ts';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const proxy = 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/main/connections\n';

describe('connections of shares', { skip: noGuests, timeout: 300_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('shares');
    await startNfsServer(guest);
    for (const folder of ['/srv/one', '/srv/two', '/srv/media']) await exportFolder(guest, folder);
    await guest.run(`echo '${guest.address} nas storage' >>/etc/hosts; mkdir -p /srv/one/csi /mnt/below`);
    server = await startSwitchboard(guest, { config: proxy });
  });
  after(() => guest?.down());

  const write = (name: string, text: string) =>
    guest.run(`cd /run/switchboard/main && mkdir -p connections && cat >new && mv new connections/${name}.yaml`, {
      input: text,
    });
  const client = (name: string, share: string, base: string, more = 'controllerMount: auto', host = 'nas') =>
    write(
      name,
      `driver: nfs-client\nnfs:\n  shareHost: ${host}\n  shareBasePath: ${share}\n  controllerBasePath: ${base}\n  ${more}\n`,
    );
  const on = (connection: string) => controllerClient(() => server, { connection });
  const mounted = (place: string) => guest.run(`findmnt -n -o SOURCE --mountpoint ${place} || true`);

  test('a share that is declared by hand: found, used, and left as it was', async () => {
    await write(
      'manual',
      `driver: node-manual
node-manual:
  volumes:
    media: { context: { node_attach_driver: nfs, server: nas, share: /srv/media } }
node: { mount: { mount_flags: [vers=4.2] } }
`,
    );
    await guest.run('echo before >/srv/media/kept');
    const manual = on('manual');
    const volume = await manual.create('media');
    const node = manual.onNode(volume);
    await node.stage();
    await node.publish('rw');
    await node.publish('ro', { readonly: true });
    await guest.run(`cd ${node.target('rw')} && cat kept >>copy && echo after >>copy`);
    await assert.rejects(guest.run(`touch ${node.target('ro')}/no`));
    assert.equal((await node.stats('rw')).trouble, '');
    for (const name of ['rw', 'ro']) await node.unpublish(name);
    await node.unstage();
    await manual.remove(volume.volumeId);
    assert.equal(await guest.run('cd /srv/media && cat kept copy'), 'before\nbefore\nafter\n');
    await assertNothingLeft(guest, server);
  });

  test('another share in the connection: the former one is left, unmounted, with all that is on it', async () => {
    await client('moving', '/srv/one', '/mnt/moving');
    const moving = on('moving');
    const before = await moving.create('before');
    await client('moving', '/srv/two', '/mnt/moving');
    // The former driver is on its way out while the new one gets its first call.
    await eventually(async () => {
      assert.equal((await moving.create('after')).volumeContext.share, '/srv/two/v/after');
    });
    assert.equal(await mounted('/mnt/moving'), 'nas:/srv/two\n');
    await moving.remove(before.volumeId);
    assert.equal(await guest.run('ls /srv/one/v /srv/two/v'), '/srv/one/v:\nbefore\n\n/srv/two/v:\nafter\n');
    await client('moving', '/srv/one', '/mnt/moving');
    await eventually(async () => void (await moving.create('before')));
    await moving.remove(before.volumeId);
    await guest.run('rm -rf /srv/two/v /srv/two/.switchboard /run/switchboard/main/connections/moving.yaml');
  });

  test('two connections at one base path: volumes of the same name are not mistaken for each other', async () => {
    await client('a', '/srv/one', '/mnt/same', '', 'nas');
    await client('b', '/srv/two', '/mnt/same', '', 'nas');
    await client('c', '/srv/one', '/mnt/same', '', 'other.example.org');
    await guest.run('mkdir -p /mnt/same && mount -t nfs -o vers=4.2 nas:/srv/one /mnt/same');
    await on('a').create('data');
    await guest.run('echo precious >/srv/one/v/data/file');
    for (const name of ['b', 'c']) {
      await assert.rejects(on(name).remove(`v:${name}/data`), { code: 'FAILED_PRECONDITION', message: /\/mnt\/same/ });
      await assert.rejects(on(name).create('data'), { code: 'FAILED_PRECONDITION' });
    }
    assert.equal(await guest.run('cat /srv/one/v/data/file'), 'precious\n');
    await on('a').remove('v:a/data');
    await guest.run('rm /run/switchboard/main/connections/[abc].yaml; umount /mnt/same');
  });

  test('a share that somebody mounted: by another name, and the folder above', async () => {
    await client('below', '/srv/one/csi', '/mnt/below/csi', '', 'nas');
    await guest.run('mount -t nfs -o vers=3,nolock storage:/srv/one /mnt/below');
    const volume = await on('below').create('v1');
    await guest.run('test -d /srv/one/csi/v/v1');
    const node = on('below').onNode(volume);
    await node.stage();
    await node.publish('rw');
    await assert.rejects(on('below').remove(volume.volumeId), {
      code: 'FAILED_PRECONDITION',
      message: /is mounted at/,
    });
    await node.unpublish('rw');
    await node.unstage();
    await on('below').remove(volume.volumeId);
    await guest.run('umount /mnt/below');
    await assert.rejects(on('below').create('v1'), { code: 'FAILED_PRECONDITION', message: /any more/ });
    assert.equal(await guest.run('ls /mnt/below'), '');
    assert.equal(await server.stop(), 0);
    await assertNothingLeft(guest);
  });
});
