/** Shares whose server is cut off, hangs, or has forgotten them, between two machines; and what no other test says of them. */
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { CallError } from '../../src/core/errors.ts';
import { services } from '../../src/generated/services.js';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { openNetwork } from './network.ts';
import { nodeVolume, type VolumeFacts } from './node-volume.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { startSmbServer } from './services/smb-server.ts';
import { type Switchboard, type SwitchboardOptions, startSwitchboard } from './switchboard.ts';

const { Controller } = services;
const password = 'p,w "4 \'x';

describe('shares of another machine', { skip: noGuests, timeout: 600_000 }, () => {
  let nas: Guest;
  let node: Guest;
  let server: Switchboard;
  let close = async () => {};
  before(async () => {
    const network = await openNetwork();
    close = () => network.close();
    nas = await boot('nas', { network });
    node = await boot('node', { network });
    for (const guest of [nas, node]) {
      await startNfsServer(guest);
      await exportFolder(guest, '/srv/nfs');
    }
    await nas.run('mkdir -p /srv/nfs/a/b /srv/nfs/other "/srv/nfs/with space" /srv/smb/a/b');
    await startSmbServer(nas, { files: '/srv/smb' }, { user: 'clerk', password });
    // It hangs soon, so that the test does not take long.
    server = await startSwitchboard(node, { env: { MOUNT_DEFAULT_TIMEOUT: '8000' } });
  });
  after(async () => {
    await node?.down();
    await nas?.down();
    await close();
  });

  const volume = (facts: VolumeFacts) => nodeVolume(() => server, facts);
  const nfs = (id: string, share = '/srv/nfs/a', vers = '4.2') =>
    volume({ id, context: { node_attach_driver: 'nfs', server: nas.address, share }, mountFlags: [`vers=${vers}`] });
  const own = (id: string) =>
    volume({ id, context: { node_attach_driver: 'nfs', server: node.address, share: '/srv/nfs' } });
  const smb = (id: string, share = 'files', secrets: VolumeFacts['secrets'] = { username: 'clerk', password }) =>
    volume({ id, context: { node_attach_driver: 'smb', server: nas.address, share }, secrets });

  test('folders of shares are told apart, and mounted again by other names are the same', async () => {
    await node.run(`echo '${nas.address} nas' >>/etc/hosts`);
    const byName = volume({
      id: 'named',
      context: { node_attach_driver: 'nfs', server: 'nas', share: '/srv/nfs/a/b/' },
      mountFlags: ['vers=4.2'],
    });
    const all = [
      nfs('top', '/srv/nfs'),
      byName,
      nfs('space', '/srv/nfs/with space', '3'),
      smb('files'),
      smb('deep', 'files/a/b/'),
    ];
    for (const one of all) {
      await one.stage();
      await one.stage();
      await one.publish('t');
    }
    for (const [index, one] of all.entries()) await node.run(`echo ${index} >${one.target('t')}/mine`);
    assert.equal(
      await nas.run('cd /srv && cat nfs/mine nfs/a/b/mine "nfs/with space/mine" smb/mine smb/a/b/mine'),
      '0\n1\n2\n3\n4\n',
    );
    // Another share at the same place is not taken for it.
    const wrong = volume({
      id: 'top',
      context: { node_attach_driver: 'nfs', server: nas.address, share: '/srv/nfs/a' },
    });
    await assert.rejects(wrong.stage(), { code: 'FAILED_PRECONDITION' });
    for (const one of all) {
      await one.unpublish('t');
      await one.unstage();
    }
    await assertNothingLeft(node, server);
  });

  /** Gives all arguments of all processes at the moments when an SMB share was mounted. */
  async function watchMounts(t: TestContext): Promise<() => Promise<string>> {
    const wrapper = '#!/bin/bash\ncat /proc/[0-9]*/cmdline >>/run/seen/arguments\nexec /run/seen/mount.cifs "$@"\n';
    await node.run('mkdir /run/seen && mv /usr/sbin/mount.cifs /run/seen/');
    t.after(() => node.run('mv /run/seen/mount.cifs /usr/sbin/ && rm -r /run/seen'));
    await node.run('cat >/usr/sbin/mount.cifs && chmod 755 /usr/sbin/mount.cifs', { input: wrapper });
    return () => node.run('tr "\\0" " " </run/seen/arguments');
  }

  test('no part of an account is in any argument or log line', async (t) => {
    const arguments_ = await watchMounts(t);
    const one = smb('secret', 'files', {
      mount_flags: `username=clerk,vers=3.0,password=${password.replaceAll(',', ',,')}`,
    });
    await one.stage();
    await one.unstage();
    await assert.rejects(smb('wrong', 'files', { username: 'clerk', password: 'hush-hush' }).stage(), {
      code: 'PERMISSION_DENIED',
    });
    await smb('wrong').unstage();
    const seen = await arguments_();
    assert.match(seen, /vers=3\.0/);
    for (const text of [seen, JSON.stringify(server.log)]) assert.doesNotMatch(text, /p,+w|hush|clerk/);
    await assertNothingLeft(node, server);
  });

  test('what the server says of a mount that fails', async () => {
    await assert.rejects(nfs('no', '/srv/nfs/none').stage(), { code: 'NOT_FOUND' });
    await assert.rejects(nfs('no', '/srv/none', '3').stage(), { code: 'PERMISSION_DENIED' });
    await assert.rejects(smb('no', 'none').stage(), { code: 'NOT_FOUND' });
    await assert.rejects(smb('no', 'files/none').stage(), { code: 'NOT_FOUND' });
    await assert.rejects(smb('no', 'files', {}).stage(), { code: 'PERMISSION_DENIED' });
    const closed = { node_attach_driver: 'nfs', server: nas.address, share: '/srv/nfs' };
    await assert.rejects(volume({ id: 'no', context: closed, mountFlags: ['vers=4.2', 'port=2050'] }).stage(), {
      code: 'UNAVAILABLE',
      message: /refused/,
    });
    await assert.rejects(volume({ id: 'no', context: closed, mountFlags: ['nonsense=1'] }).stage(), {
      code: 'INVALID_ARGUMENT',
    });
    await nfs('no').unstage();
    await assertNothingLeft(node, server);
  });

  test('the server is cut off: every call ends, other servers are as fast as before, and data is there when it is back', async (t) => {
    const [a, b, files] = [nfs('a'), nfs('b', '/srv/nfs/other', '3'), smb('files')];
    for (const one of [a, b, files]) {
      await one.stage();
      await one.publish('t');
    }
    await node.run(`echo before >${a.target('t')}/kept && sync -f ${a.target('t')}`);
    const usual = await timed(() => cycle(own('own')));
    // With the cable out, but without losing the way that the test has to the node.
    t.after(() => nas.heal());
    await nas.cut();

    const calls = Promise.allSettled([
      timed(() => nfs('late', '/srv/nfs').stage()),
      timed(async () => assert.match((await b.stats('t')).trouble, /does not answer/)),
      timed(async () => assert.match((await files.stats('t')).trouble, /does not answer/)),
    ]);
    const meanwhile = await timed(() => cycle(own('own')));
    assert.ok(meanwhile < usual * 4 + 1000, `${meanwhile} ms instead of ${usual} ms`);
    const [stage, ...stats] = await calls;
    const unavailable = (outcome: PromiseSettledResult<unknown> | undefined) =>
      outcome?.status === 'rejected' && (outcome.reason as CallError).code === 'UNAVAILABLE';
    assert.ok(unavailable(stage), JSON.stringify(stage));
    assert.ok(
      stats.every(({ status }) => status === 'fulfilled'),
      JSON.stringify(stats),
    );

    // Nothing waits for it any more.
    const asked = await timed(async () => {
      await assert.rejects(nfs('late', '/srv/nfs').stage(), { code: 'UNAVAILABLE', message: /does not answer since/ });
      assert.match((await a.stats('t')).trouble, /does not answer/);
      await assert.rejects(a.publish('more'), { code: 'UNAVAILABLE' });
    });
    assert.ok(asked < 7000, `${asked} ms`);
    await b.unpublish('t');
    await b.unstage();
    await files.unpublish('t');
    await files.unstage();

    await nas.heal();
    await soon(async () => assert.equal((await a.stats('t')).trouble, ''));
    assert.equal(await node.run(`cat ${a.target('t')}/kept`), 'before\n');
    await node.run(`echo after >>${a.target('t')}/kept`);
    await a.unpublish('t');
    await a.unstage();
    assert.equal(await nas.run('cat /srv/nfs/a/kept'), 'before\nafter\n');
    await soon(() => cycle(nfs('late', '/srv/nfs')));
    await soon(() => cycle(smb('files')));
    await assertNothingLeft(node, server);
  });

  test('a controller mounts the shares that it works on, and takes them away when it stops', async (t) => {
    await nas.run('mkdir -p /srv/nfs/auto /srv/smb/auto');
    const own = await startController(t);
    const clients = { nfs: controllerClient(own.server, { connection: 'nfs' }), smb: smbController(own.server) };
    assert.equal(await mountedForController(), '', 'nothing is mounted before it is needed');
    const seen = await watchMounts(t);
    await Promise.all(
      Object.entries(clients).map(async ([name, client]) => {
        const volume = await client.create('one');
        await nas.run(`echo kept >/srv/${name}/auto/v/one/file`);
        assert.equal((await client.create('one')).volumeId, volume.volumeId);
        const snapshot = await client.snapshot(volume.volumeId, 'snap');
        await nas.run(`echo spoilt >/srv/${name}/auto/v/one/file`);
        const copy = await client.create('two', { snapshot: snapshot.snapshotId });
        assert.equal(await nas.run(`cat /srv/${name}/auto/v/two/file`), 'kept\n');
        const { availableCapacity } = await own.server().call(Controller.GetCapacity, {
          parameters: { connection: name },
        });
        assert.ok(availableCapacity > 0);
        assert.deepEqual((await client.snapshots(volume.volumeId)).length, 1);
        await client.removeSnapshot(snapshot.snapshotId);
        for (const { volumeId } of [copy, volume]) await client.remove(volumeId);
        assert.equal(await nas.run(`ls /srv/${name}/auto/v /srv/${name}/auto/s | grep -v :; true`), '\n');
      }),
    );
    const ids = (await clients.nfs.list()).map(({ volume }) => volume?.volumeId);
    assert.deepEqual(ids, []);
    assert.equal(await mountedForController(), '/mnt/auto/nfs nfs4\n/mnt/auto/smb cifs\n');
    for (const text of [await seen(), own.logs()]) assert.doesNotMatch(text, /p,+w|clerk/);

    // Whoever is killed cannot unmount anything: the next one does.
    await own.restart();
    await Promise.all(Object.values(clients).map((client) => client.create('kept')));
    assert.equal(await mountedForController(), '/mnt/auto/nfs nfs4\n/mnt/auto/smb cifs\n');
    t.after(() => nas.heal());
    // The limit of SMB is a minute, for servers that hold back an answer although they are there: this one is not there.
    await nas.run('pkill -x smbd; while pidof smbd; do sleep 0.1; done');
    await nas.cut();
    await Promise.all(
      Object.entries(clients).map(async ([name, client]) => {
        const lost = await timed(() => assert.rejects(client.create('late'), { code: 'UNAVAILABLE' }));
        assert.ok(lost < 40_000, `${name}: ${lost} ms`);
        const again = await timed(() => assert.rejects(client.create('later'), { code: 'UNAVAILABLE' }));
        assert.ok(again < 15_000, `${name}: ${again} ms, although it is known`);
      }),
    );
    await nas.heal();
    await nas.run('smbd -D');
    for (const client of Object.values(clients)) {
      await soon(async () => void (await client.create('late')));
      for (const { volume } of await client.list()) await client.remove(volume?.volumeId ?? '');
    }
    assert.equal(await own.server().stop(), 0);
    assert.equal(await mountedForController(), '');
    assert.doesNotMatch(own.logs(), /p,+w|clerk/);
    await assertNothingLeft(node, server);
  });

  const mountedForController = () =>
    node.run(`awk '$5 ~ "^/mnt/auto/" { print $5, $(NF-2) }' /proc/self/mountinfo | sort`);
  const smbController = (on: () => Switchboard) =>
    controllerClient(on, { connection: 'smb', secrets: { username: 'clerk', password } });

  async function startController(t: TestContext) {
    const connection = (name: string, shareBasePath: string, more = '') =>
      `driver: ${name}-client\n${name}:\n  shareHost: ${nas.address}\n  shareBasePath: ${shareBasePath}\n` +
      `  controllerBasePath: /mnt/auto/${name}\n  controllerMount: auto\n${more}`;
    const account = `  controllerMountCredentials: { username: clerk, password: ${JSON.stringify(password)} }\n`;
    const options: SwitchboardOptions = {
      name: 'controller',
      config: 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/controller/connections\n',
      files: {
        'connections/nfs.yaml': connection('nfs', '/srv/nfs/auto'),
        'connections/smb.yaml': connection('smb', 'files/auto', account),
      },
      args: ['--csi-mode', 'controller', '--log-level', 'debug'],
      env: { MOUNT_DEFAULT_TIMEOUT: '8000' },
    };
    const servers = [await startSwitchboard(node, options)];
    const current = () => servers.at(-1) as Switchboard;
    t.after(() =>
      current()
        .kill()
        .catch(() => {}),
    );
    return {
      server: current,
      logs: () => JSON.stringify(servers.map(({ log }) => log)),
      async restart() {
        await current().kill();
        servers.push(await startSwitchboard(node, options));
      },
    };
  }

  const exportAs = (fsid: number) =>
    nas.run(
      `echo '/srv/short *(rw,no_root_squash,no_subtree_check,insecure,fsid=${fsid})' >/etc/exports.d/short.exports; exportfs -ra; exportfs -f`,
    );
  const faults = {
    'NFS 4.2, a folder that was made anew': {
      vers: '4.2',
      forget: () => nas.run('rm -rf /srv/short/v && mkdir /srv/short/v && echo two >/srv/short/v/file && exportfs -f'),
    },
    'NFS 3, a file system that came back as another': {
      vers: '3',
      forget: async () => {
        await exportAs(901);
        await nas.run('echo two >/srv/short/v/file');
      },
    },
  };
  for (const [name, { vers, forget }] of Object.entries(faults)) {
    test(`what the server has forgotten is mounted anew: ${name}`, async () => {
      await nas.run('mkdir -p /srv/short/v && echo one >/srv/short/v/file');
      await exportAs(900);
      const one = nfs('short', '/srv/short/v', vers);
      await one.stage();
      await one.publish('old');
      assert.equal(await node.run(`cat ${one.target('old')}/file`), 'one\n');
      await forget();
      await soon(async () => assert.match((await one.stats('old')).trouble, /stale/i));
      await one.publish('new');
      assert.equal(await node.run(`cat ${one.target('new')}/file`), 'two\n');
      await one.publish('old');
      assert.equal(await node.run(`cat ${one.target('old')}/file`), 'two\n');
      for (const place of ['new', 'old']) await one.unpublish(place);
      await one.unstage();
      await assertNothingLeft(node, server);
    });
  }
});

/** What takes its time after a fault: the pauses in which a server is left alone, those of TCP, and what a server remembers. */
async function soon(holds: () => Promise<void>): Promise<void> {
  for (const giveUp = Date.now() + 120_000; Date.now() < giveUp; await setTimeout(500)) {
    if (
      await holds().then(
        () => true,
        () => false,
      )
    )
      return;
  }
  await holds();
}

async function cycle(volume: ReturnType<typeof nodeVolume>): Promise<void> {
  await volume.stage();
  await volume.publish('t');
  await volume.unpublish('t');
  await volume.unstage();
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
