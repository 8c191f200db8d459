/** The Docker door of the real server: real mounts, processes that are killed, storage that goes away. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { readMountTable } from '../../src/node/mount-table.ts';
import { mountsBelow } from '../conformance/leftovers.ts';
import { type AskDocker, dockerClient } from './docker-client.ts';
import { enterMountNamespace } from './node-support.ts';
import { assertAtRest, eventually, makeSite, type Server, type Site, type StartOptions } from './server-under-test.ts';

enterMountNamespace(import.meta.url);

interface Bench {
  readonly site: Site;
  readonly server: Server;
  readonly ask: AskDocker;
  /** As {@link AskDocker}, and success is asserted. */
  readonly good: AskDocker;
  start(options?: StartOptions): Promise<Server>;
}

async function bench(t: TestContext, options: StartOptions = {}): Promise<Bench> {
  const site = await makeSite(t);
  const start: Bench['start'] = ({ args = [], env = {} } = {}) =>
    site.start({
      args: ['--docker-default', 'connection=local', ...args],
      // A dockerd that may run on this machine is not the one that this test plays.
      env: { SWITCHBOARD_STATE_DIR: site.path('state'), SWITCHBOARD_DOCKER_ALLOW_UNSEEN_MOUNTS: 'true', ...env },
    });
  const ask = dockerClient(site.socket);
  const good: AskDocker = async (endpoint, message, signal) => {
    const answer = await ask(endpoint, message, signal);
    assert.equal(answer.Err, '', `${endpoint} ${JSON.stringify(message)}`);
    return answer;
  };
  return { site, server: await start(options), ask, good, start };
}

/** Nothing is mounted, no record of a mount is kept, no folder of a mount is left. */
async function assertNothingMounted({ root, path }: Site): Promise<void> {
  assert.deepEqual(await mountsBelow(root), []);
  for (const folder of ['state/docker/mounts', 'state/docker/mnt']) {
    assert.deepEqual(await readdir(path(folder)).catch(() => []), [], folder);
  }
}

test('one socket for Docker and CSI: a volume made by one, seen by the other', async (t) => {
  const { site, server, good } = await bench(t);
  assert.equal((await good('Capabilities')).Capabilities?.Scope, 'local');
  const [, , csi] = await Promise.all([
    good('Create', { Name: 'a', Opts: { size: '10Mi' } }),
    good('Create', { Name: 'b' }),
    server.call(services.Identity.GetPluginInfo, {}),
  ]);
  assert.equal(csi.name, 'org.switchboard.csi');
  const { entries } = await server.call(services.Controller.ListVolumes, {});
  assert.deepEqual(
    entries.map((entry) => entry.volume?.volumeId),
    ['v:local/a', 'v:local/b'],
  );
  for (const name of ['a', 'b']) await good('Remove', { Name: name });
  assert.deepEqual((await server.call(services.Controller.ListVolumes, {})).entries, []);
  await assertAtRest(site, server);
});

test('mounted, written to, mounted again, unmounted, removed', async (t) => {
  const { site, server, ask, good } = await bench(t);
  await good('Create', { Name: 'data', Opts: { size: '10Mi', mountFlags: 'noatime,nosuid' } });
  const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
  await writeFile(join(at, 'greeting'), 'hello');
  const mount = (await readMountTable()).at(at);
  assert.ok(mount?.options.includes('noatime') && mount.options.includes('nosuid'), mount?.options.join());
  assert.equal((await good('Mount', { Name: 'data', ID: 'two' })).Mountpoint, at);
  assert.deepEqual((await good('List')).Volumes, [{ Name: 'data', Mountpoint: at }]);
  await good('Unmount', { Name: 'data', ID: 'one' });
  assert.equal(await readFile(join(at, 'greeting'), 'utf8'), 'hello');
  await good('Unmount', { Name: 'data', ID: 'two' });
  await assertNothingMounted(site);
  assert.equal((await good('Path', { Name: 'data' })).Mountpoint, '');
  const again = await good('Mount', { Name: 'data', ID: 'three' });
  assert.equal(await readFile(join(again.Mountpoint ?? '', 'greeting'), 'utf8'), 'hello');
  await good('Unmount', { Name: 'data', ID: 'three' });
  await good('Remove', { Name: 'data' });
  assert.match((await ask('Get', { Name: 'data' })).Err, /no volume "data"/);
  await assertAtRest(site, server);
});

test('from a snapshot and from another volume', async (t) => {
  const { server, good } = await bench(t);
  await good('Create', { Name: 'data' });
  const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
  await writeFile(join(at, 'state'), 'before');
  const { CreateSnapshot } = services.Controller;
  const { snapshot } = await server.call(CreateSnapshot, { sourceVolumeId: 'v:local/data', name: 'monday' });
  await writeFile(join(at, 'state'), 'after');
  await good('Create', { Name: 'restored', Opts: { from: `snapshot:${snapshot?.snapshotId}` } });
  await good('Create', { Name: 'copied', Opts: { from: 'volume:data' } });
  for (const [name, state] of [
    ['restored', 'before'],
    ['copied', 'after'],
  ] as const) {
    const { Mountpoint: there = '' } = await good('Mount', { Name: name, ID: 'one' });
    assert.equal(await readFile(join(there, 'state'), 'utf8'), state);
    await good('Unmount', { Name: name, ID: 'one' });
  }
});

test('a socket for Docker alone takes no CSI calls', async (t) => {
  const { site, server, start } = await bench(t);
  await server.stop();
  const path = site.path('plugins/switchboard.sock');
  const next = await start({ args: ['--docker-socket', path] });
  assert.equal((await dockerClient(path)('Create', { Name: 'a' })).Err, '');
  const csi = connect(path).on('error', () => {});
  csi.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  let answered = '';
  csi.on('data', (chunk) => {
    answered += chunk;
  });
  await once(csi, 'close');
  assert.equal(answered, '');
  await next.stop();
  assert.deepEqual(await readdir(site.path('plugins')), []);
});

describe('kill -9', () => {
  test('while it is mounted: the next process counts on', async (t) => {
    const { site, server, good, start } = await bench(t);
    await good('Create', { Name: 'data' });
    const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
    await good('Mount', { Name: 'data', ID: 'two' });
    await writeFile(join(at, 'x'), 'precious');
    await server.kill();
    const next = await start();
    assert.equal(await readFile(join(at, 'x'), 'utf8'), 'precious');
    assert.equal((await good('Get', { Name: 'data' })).Volume?.Mountpoint, at);
    await good('Unmount', { Name: 'data', ID: 'two' });
    assert.equal((await readMountTable()).at(at)?.mountPoint, at);
    await good('Unmount', { Name: 'data', ID: 'one' });
    await assertNothingMounted(site);
    await good('Remove', { Name: 'data' });
    await assertAtRest(site, next);
  });

  test('and its mounts are gone: the next caller gets the volume, not the empty folder', async (t) => {
    const { site, server, good, start } = await bench(t);
    await good('Create', { Name: 'data' });
    const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
    await writeFile(join(at, 'x'), 'precious');
    await server.kill();
    for (const place of [at, at.replace(/data$/, 'staging')]) await once(spawn('umount', [place]), 'close');
    await start();
    assert.equal((await good('Path', { Name: 'data' })).Mountpoint, '');
    await good('Mount', { Name: 'data', ID: 'two' });
    assert.equal(await readFile(join(at, 'x'), 'utf8'), 'precious');
    for (const id of ['one', 'two']) await good('Unmount', { Name: 'data', ID: id });
    await assertNothingMounted(site);
  });

  for (const at of [1, 2]) {
    test(`in the middle of mounting, in mount number ${at}: it is taken away by the next process`, async (t) => {
      const { site, server, ask, good, start } = await bench(t);
      await good('Create', { Name: 'data' });
      await site.standIn('mount', stuckAt(site, at));
      const broken = assert.rejects(ask('Mount', { Name: 'data', ID: 'one' }), /socket hang up|ECONNRESET/);
      await eventually(async () => assert.ok((await readdir(site.root)).includes('stuck')));
      await server.kill();
      await broken;
      await endStuck(site);
      await rm(site.path('bin/mount'));
      const next = await start();
      await eventually(() => assertNothingMounted(site));
      const { Mountpoint: path } = await good('Mount', { Name: 'data', ID: 'one' });
      assert.ok(path);
      await good('Unmount', { Name: 'data', ID: 'one' });
      await good('Remove', { Name: 'data' });
      await assertAtRest(site, next);
    });
  }

  test('in the middle of unmounting', async (t) => {
    const { site, server, ask, good, start } = await bench(t);
    await good('Create', { Name: 'data' });
    await good('Mount', { Name: 'data', ID: 'one' });
    await site.standIn('umount', `/bin/umount "$@"; touch ${site.path('stuck')}; exec sleep 1000`);
    const broken = assert.rejects(ask('Unmount', { Name: 'data', ID: 'one' }), /socket hang up|ECONNRESET/);
    await eventually(async () => assert.ok((await readdir(site.root)).includes('stuck')));
    await server.kill();
    await broken;
    await endStuck(site);
    await rm(site.path('bin/umount'));
    const next = await start();
    await eventually(() => assertNothingMounted(site));
    await assertAtRest(site, next);
  });
});

/** The stand-ins for programs outlive the server, which nobody told to end them. */
async function endStuck(site: Site): Promise<void> {
  for (const pid of await site.processes()) process.kill(pid, 'SIGKILL');
}

/** A `mount` that does its work, and the n-th time says so and never ends. */
function stuckAt({ path }: Site, number: number): string {
  const count = path('count');
  return `echo x >> ${count}; /bin/mount "$@" || exit; [ "$(wc -l < ${count})" -lt ${number} ] || { touch ${path('stuck')}; exec sleep 1000; }`;
}

test('a caller who leaves while it is mounted: nobody has it, and it is unmounted', async (t) => {
  const { site, server, ask, good } = await bench(t);
  await good('Create', { Name: 'data' });
  await site.standIn(
    'mount',
    `touch ${site.path('stuck')}; while [ ! -e ${site.path('go')} ]; do sleep 0.05; done; exec /bin/mount "$@"`,
  );
  const leaver = new AbortController();
  const left = assert.rejects(ask('Mount', { Name: 'data', ID: 'one' }, leaver.signal), /abort/);
  await eventually(async () => assert.ok((await readdir(site.root)).includes('stuck')));
  leaver.abort();
  await left;
  await server.logged('VolumeDriver.Mount');
  await writeFile(site.path('go'), '');
  await eventually(() => assertNothingMounted(site));
  await good('Mount', { Name: 'data', ID: 'one' });
  await good('Unmount', { Name: 'data', ID: 'one' });
  await assertNothingMounted(site);
});

test('a caller who leaves and comes back under the same id keeps what he got the second time', async (t) => {
  const { site, server, ask, good } = await bench(t, { args: ['--log-level', 'verbose'] });
  await good('Create', { Name: 'data' });
  await site.standIn(
    'mount',
    `touch ${site.path('stuck')}; while [ ! -e ${site.path('go')} ]; do sleep 0.05; done; exec /bin/mount "$@"`,
  );
  const leaver = new AbortController();
  const left = assert.rejects(ask('Mount', { Name: 'data', ID: 'one' }, leaver.signal), /abort/);
  await eventually(async () => assert.ok((await readdir(site.root)).includes('stuck')));
  leaver.abort();
  await left;
  const again = good('Mount', { Name: 'data', ID: 'one' });
  await writeFile(site.path('go'), '');
  const { Mountpoint: at = '' } = await again;
  await server.logged('a volume that was to be unmounted is wanted again');
  assert.equal((await readMountTable()).at(at)?.mountPoint, at);
  await good('Unmount', { Name: 'data', ID: 'one' });
  await assertNothingMounted(site);
});

describe('storage that goes away', () => {
  test('a connection without its file: volumes stay known, mounts go on, removal waits', async (t) => {
    const { site, ask, good } = await bench(t);
    await good('Create', { Name: 'data' });
    const { Mountpoint: at } = await good('Mount', { Name: 'data', ID: 'one' });
    const file = site.path('connections/local.yaml');
    await rename(file, `${file}.away`);
    const { Volume: volume } = await good('Get', { Name: 'data' });
    assert.equal(volume?.Mountpoint, at);
    assert.match(volume?.Status.unreachable ?? '', /as last known; connection "local": there is no file/);
    assert.deepEqual((await good('List')).Volumes, [{ Name: 'data', Mountpoint: at }]);
    assert.match((await ask('Remove', { Name: 'data' })).Err, /there is no file/);
    await good('Unmount', { Name: 'data', ID: 'one' }).catch(() => {});
    await rename(`${file}.away`, file);
    await eventually(() => assertNothingMounted(site));
    await good('Remove', { Name: 'data' });
  });

  test('a broken connection: nothing is made by default, since the name may be there', async (t) => {
    const { site, ask, good } = await bench(t);
    await site.connect('nas', 'driver: [');
    assert.match((await ask('Get', { Name: 'data' })).Err, /not everybody could be asked.*nas/);
    assert.match((await ask('Create', { Name: 'data' })).Err, /nas.*-o connection=NAME/);
    await good('Create', { Name: 'data', Opts: { connection: 'local' } });
  });
});

test('another node, or a lost state: volume and options come from the back end', async (t) => {
  const { site, server, good, start } = await bench(t);
  await site.connect('other');
  await good('Create', { Name: 'data', Opts: { connection: 'other', mountFlags: 'noexec' } });
  await server.stop();
  await rm(site.path('state'), { recursive: true });
  await start();
  assert.equal((await good('Get', { Name: 'data' })).Volume?.Status.id, 'v:other/data');
  const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
  assert.ok((await readMountTable()).at(at)?.options.includes('noexec'));
  await good('Unmount', { Name: 'data', ID: 'one' });
  await good('Remove', { Name: 'data' });
});

test('volumes of CSI clients are no volumes of Docker', async (t) => {
  const { server, ask, good } = await bench(t);
  await server.call(services.Controller.CreateVolume, {
    name: 'web',
    volumeCapabilities: [{ mount: {}, accessMode: { mode: 1 } }],
    parameters: { connection: 'local' },
  });
  assert.match((await ask('Get', { Name: 'web' })).Err, /no volume "web"/);
  assert.deepEqual((await good('List')).Volumes, []);
  await good('Remove', { Name: 'web' });
  assert.match((await ask('Create', { Name: 'web' })).Err, /exists already/);
  assert.match((await ask('Remove', { Name: 'local/web' })).Err, /not made by Docker/);
  assert.equal((await server.call(services.Controller.ListVolumes, {})).entries.length, 1);
});

test('a volume that a container still has is not removed, whatever Docker has forgotten', async (t) => {
  const { site, server, ask, good } = await bench(t);
  await good('Create', { Name: 'data' });
  const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
  await mkdir(site.path('inside'));
  const script = `mount --bind ${at} ${site.path('inside')} && echo mounted && exec sleep 1000`;
  const container = spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => container.kill('SIGKILL'));
  await once(container.stdout, 'data');
  assert.match((await ask('Remove', { Name: 'data' })).Err, /in use on this node by process \d+ \(\w+\)/);
  container.kill('SIGKILL');
  await once(container, 'close');
  await good('Remove', { Name: 'data' });
  await assertNothingMounted(site);
  await assertAtRest(site, server);
});

test('a volume whose files somebody has open stays mounted and says by whom', async (t) => {
  const { site, ask, good } = await bench(t);
  await good('Create', { Name: 'data' });
  const { Mountpoint: at = '' } = await good('Mount', { Name: 'data', ID: 'one' });
  const holder = spawn('sleep', ['1000'], { cwd: at });
  t.after(() => holder.kill('SIGKILL'));
  assert.match((await ask('Unmount', { Name: 'data', ID: 'one' })).Err, /in use by process \d+ \(sleep\)/);
  holder.kill('SIGKILL');
  await once(holder, 'close');
  await eventually(() => assertNothingMounted(site));
});

test('half of a plugin does not serve Docker', async (t) => {
  const { server, ask, start } = await bench(t);
  await server.stop();
  await start({ args: ['--csi-mode', 'node'] });
  await assert.rejects(ask('List'), /socket hang up|ECONNRESET/);
});
