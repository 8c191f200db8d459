/** A server of storage that is cut off in the middle of the life of its volumes, or loses its power, beside one that is not. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../integration/server-under-test.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { type Network, openNetwork } from './network.ts';
import { nodeVolume, type VolumeFacts } from './node-volume.ts';
import { createBackingFile } from './services/backing.ts';
import { createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { createNvmePort, createNvmeSubsystem, startNvmeHost } from './services/nvme-subsystem.ts';
import { startSmbServer } from './services/smb-server.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const iqn = 'iqn.2026-01.org.lab:far';
const nqn = 'nqn.2026-01.org.lab:far';
const clerk = { user: 'clerk', password: 'secret' };
const names = ['one', 'two'] as const;

describe('a server out of reach', { skip: noGuests, timeout: 580_000 }, () => {
  let network: Network;
  let far: Guest;
  let near: Guest;
  let server: Switchboard;
  const volume = (facts: VolumeFacts) => nodeVolume(() => server, facts);

  before(async () => {
    network = await openNetwork();
    [far, near] = await Promise.all([boot('far', { network }), boot('near', { network })]);
    await serve();
    await startNfsServer(near);
    await exportFolder(near, '/srv/nfs');
    await startInitiator(near);
    await startNvmeHost(near);
    server = await startSwitchboard(near, {
      env: { MOUNT_DEFAULT_TIMEOUT: '6000', ISCSI_DEFAULT_TIMEOUT: '8000', NVMEOF_DEFAULT_TIMEOUT: '8000' },
    });
  });
  after(async () => {
    await Promise.all([far?.down(), near?.down()]);
    await network?.close();
  });

  /** What `far` offers: after it was without power, too. */
  async function serve(): Promise<void> {
    await startNfsServer(far);
    for (const name of names) await exportFolder(far, `/srv/nfs/${name}`);
    await startSmbServer(far, { one: '/srv/smb/one', two: '/srv/smb/two' }, clerk);
    const files = [];
    for (const name of ['lun-one', 'lun-two', 'namespace-one', 'namespace-two']) {
      files.push(await createBackingFile(far, name, 64 * 2 ** 20));
    }
    const [lunOne = '', lunTwo = '', namespaceOne = '', namespaceTwo = ''] = files;
    await createIscsiTarget(far, { iqn, portals: [`${far.address}:3260`], luns: { 0: lunOne, 1: lunTwo } });
    await createNvmePort(far, 1, far.address, 4420);
    await createNvmeSubsystem(far, { nqn, ports: [1], namespaces: { 1: namespaceOne, 2: namespaceTwo } });
  }

  const nfs = (version: string) => (name: string) => ({
    id: `nfs-${name}`,
    context: { node_attach_driver: 'nfs', server: far.address, share: `/srv/nfs/${name}` },
    mountFlags: [`vers=${version}`],
  });
  const kinds: Readonly<Record<string, (name: string) => VolumeFacts>> = {
    'NFS 3': nfs('3'),
    'NFS 4.2': nfs('4.2'),
    SMB: (name) => ({
      id: `smb-${name}`,
      context: { node_attach_driver: 'smb', server: far.address, share: name },
      secrets: { mount_flags: `username=${clerk.user},password=${clerk.password}` },
    }),
    iSCSI: (name) => ({
      id: `lun-${name}`,
      access: 'ext4',
      context: { node_attach_driver: 'iscsi', iqn, portal: far.address, lun: name === 'one' ? '0' : '1' },
    }),
    'NVMe over TCP': (name) => ({
      id: `namespace-${name}`,
      access: 'ext4',
      context: {
        node_attach_driver: 'nvmeof',
        nqn,
        transport: `tcp://${far.address}:4420?ctrl-loss-tmo=600`,
        nsid: name === 'one' ? '1' : '2',
      },
    }),
  };
  const other = () =>
    volume({
      id: 'other',
      context: { node_attach_driver: 'nfs', server: near.address, share: '/srv/nfs' },
      mountFlags: ['vers=3'],
    });
  /** Milliseconds that a volume of the server that is there takes from stage to unstage. */
  const timeOfOther = async () => {
    const started = performance.now();
    const one = other();
    await one.stage();
    await one.publish('rw');
    await one.stats('rw');
    await one.unpublish('rw');
    await one.unstage();
    return performance.now() - started;
  };

  for (const [kind, facts] of Object.entries(kinds)) {
    test(`${kind}: cut off during stage, publish, stats, unpublish and unstage`, async () => {
      const [one, two] = [volume(facts('one')), volume(facts('two'))];
      const isShare = facts('one').access === undefined;
      await one.stage();
      await one.publish('rw');
      await near.run(`echo precious >${one.target('rw')}/file; sync -f ${one.target('rw')}`);
      const usual = Math.max(await timeOfOther(), await timeOfOther());

      await far.cut();
      // Each ends by itself, with whatever the protocol makes of it, while the other server's volumes are served as usual.
      const staging = two.stage();
      const calls = [one.stats('rw'), one.publish('too')].map((call) => call.catch(() => undefined));
      const meanwhile = Math.min(await timeOfOther(), await timeOfOther());
      assert.ok(meanwhile < 5 * usual + 1000, `${usual} ms with the server, ${meanwhile} ms without`);
      await assert.rejects(staging, ({ code }: { code: string }) => /UNAVAILABLE|DEADLINE_EXCEEDED/.test(code));
      await Promise.all(calls);
      if (isShare) {
        const { trouble } = await one.stats('rw');
        assert.notEqual(trouble, '', 'statistics tell that the server is silent');
        for (const name of ['rw', 'too']) await one.unpublish(name);
        await one.unstage();
      } else {
        for (const name of ['rw', 'too']) await one.unpublish(name).catch(() => {});
        await one.unstage().catch(() => {});
      }

      await far.heal();
      await eventually(async () => {
        for (const name of ['rw', 'too']) await one.unpublish(name);
        await one.unstage();
        await two.unstage();
      });
      await assertNothingLeft(near, server);
      await eventually(() => one.stage());
      await one.publish('rw');
      assert.equal(await near.run(`cat ${one.target('rw')}/file`), 'precious\n');
      await one.unpublish('rw');
      await one.unstage();
      await assertNothingLeft(near, server);
    });
  }

  test('it loses its power with volumes of every kind in use, and comes back', async () => {
    const all = Object.entries(kinds)
      .filter(([kind]) => kind !== 'NFS 3')
      .map(([, facts]) => volume(facts('one')));
    for (const one of all) {
      await one.stage();
      await one.publish('rw');
      await near.run(`echo kept >${one.target('rw')}/file; sync ${one.target('rw')}/file`);
    }
    await far.run('sync');
    await far.reboot();
    await serve();
    for (const one of all) {
      await eventually(async () => {
        await one.stage();
        await one.publish('rw');
        assert.equal(await near.run(`cat ${one.target('rw')}/file`), 'kept\n');
      });
      await one.unpublish('rw');
      await one.unstage();
    }
    await assertNothingLeft(near, server);
  });
});
