/** How many programs the calls of a node start: that is most of what they cost. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { type NodeVolume, nodeVolume } from './node-volume.ts';
import { createBackingFile } from './services/backing.ts';
import { createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const { Probe: probe } = services.Identity;

type Counts = Readonly<Record<'stage' | 'publish' | 'stats' | 'unpublish' | 'unstage', readonly string[]>>;

describe('programs that calls start', { skip: noGuests, timeout: 180_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('commands');
    await startNfsServer(guest);
    await exportFolder(guest, '/srv/nfs');
    await startInitiator(guest);
    server = await startSwitchboard(guest, { args: ['--log-level', 'debug'] });
  });
  after(() => guest?.down());

  /** The program logs each program that has ended before it answers the call. */
  async function programsOf(call: () => Promise<unknown>): Promise<readonly string[]> {
    const before = server.log.length;
    await call();
    // An answer overtakes the log, which comes through a pipe of its own: the log of a call that follows is behind all of its lines.
    await server.call(probe, {});
    await server.logged('Probe');
    return server.log.slice(before).flatMap((line) => (line.message === 'ran' ? [String(line.program)] : []));
  }

  async function countsOf(volume: NodeVolume): Promise<Counts> {
    return {
      stage: await programsOf(() => volume.stage()),
      publish: await programsOf(() => volume.publish('rw')),
      stats: await programsOf(() => volume.stats('rw')),
      unpublish: await programsOf(() => volume.unpublish('rw')),
      unstage: await programsOf(() => volume.unstage()),
    };
  }

  test('NFS: one each', async () => {
    const context = { node_attach_driver: 'nfs', server: guest.address, share: '/srv/nfs' };
    const counts = await countsOf(nodeVolume(() => server, { id: 'share', context }));
    assert.deepEqual(
      { ...counts, stats: counts.stats.length <= 1 },
      {
        stage: ['mount'],
        publish: ['mount'],
        stats: true,
        unpublish: ['umount'],
        unstage: ['umount'],
      },
    );
  });

  test('iSCSI: three to unstage', async () => {
    const iqn = 'iqn.2026-01.org.lab:commands';
    const path = await createBackingFile(guest, 'commands', 256 * 2 ** 20);
    await createIscsiTarget(guest, { iqn, portals: ['10.0.2.15:3260'], luns: { 0: path } });
    const context = { node_attach_driver: 'iscsi', portal: '10.0.2.15:3260', iqn, lun: '0' };
    const volume = nodeVolume(() => server, { id: 'disk', context });
    // The first time, the disk gets its file system.
    await volume.stage();
    await volume.unstage();
    const counts = await countsOf(volume);
    assert.deepEqual(
      { publish: counts.publish, stats: counts.stats, unpublish: counts.unpublish },
      {
        publish: ['mount'],
        stats: [],
        unpublish: ['umount'],
      },
    );
    assert.ok(counts.unstage.length <= 3, counts.unstage.join());
    assert.ok(counts.stage.length <= 6, counts.stage.join());

    const block = nodeVolume(() => server, { id: 'block', context, access: 'block' });
    await block.stage();
    assert.deepEqual(await programsOf(() => block.publish('rw')), ['mount']);
    // The first time, the kernel may have no loop devices yet.
    await block.publish('first', { readonly: true });
    assert.deepEqual(await programsOf(() => block.publish('ro', { readonly: true })), ['losetup', 'mount']);
    assert.deepEqual(await programsOf(() => block.unpublish('ro')), ['umount', 'losetup']);
    for (const name of ['first', 'rw']) await block.unpublish(name);
    await block.unstage();
  });
});
