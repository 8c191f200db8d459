/**
 * A real Docker Engine and Swarm: the plugin beside it and the managed plugin, volumes of `docker volume` and cluster volumes, and dockerd and the
 * plugin killed in the middle. The tests build upon each other: one engine, one plugin.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { bundlePath } from '../../scripts/lib/build-bundle.ts';
import { repository } from '../../scripts/lib/repository.ts';
import { type DockerLab, noLab, openDockerLab, until } from './docker-lab.ts';

const plugin = 'switchboard:test';

describe('a real Docker engine', { skip: noLab, timeout: 290_000 }, () => {
  let lab: DockerLab;
  let folder: string;
  const docker = (...args: string[]) => lab.docker(...args);
  const at = (...names: string[]) => join(folder, ...names);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'docker-lab-'));
    lab = await openDockerLab();
  });
  after(async () => {
    await lab?.close();
    await rm(folder, { recursive: true, force: true });
  });

  afterEach(async (t) => {
    const { passed } = t as { readonly passed?: boolean };
    if ('diagnostic' in t && !passed) t.diagnostic(await lab.story());
  });

  /** A configuration with one connection, whose volumes are in `volumes`, as the plugin sees it. */
  async function configure(name: string, volumes: string): Promise<string> {
    await mkdir(at(name, 'connections'), { recursive: true });
    await writeFile(at(name, 'switchboard.yaml'), mainFile(name));
    const base = `  shareBasePath: ${volumes}\n  controllerBasePath: ${volumes}\n`;
    await writeFile(at(name, 'connections/local.yaml'), `driver: local-hostpath\nlocal-hostpath:\n${base}`);
    return at(name);
  }
  const mainFile = (name: string) => {
    const connections = name === 'beside' ? at(name, 'connections') : '/etc/switchboard/connections';
    return `driver: proxy\nproxy:\n  configFolder: ${connections}\n  nodeTopology: { type: node }\n`;
  };

  const run = (volume: string, command: string, ...options: string[]) =>
    docker('run', '--rm', '--network', 'none', '-v', `${volume}:/data`, ...options, 'tiny:1', 'sh', '-c', command);
  const volumesIn = async (base: string) => (await readdir(join(base, 'v'))).sort();
  const linesIn = async (file: string) => (await readFile(file, 'utf8').catch(() => '')).split('\n').length;
  const grows = async (file: string, limitMs = 20_000) => {
    const before = await linesIn(file);
    await until(async () => (await linesIn(file)) > before, limitMs, `new lines in ${file}`);
  };

  describe('the managed plugin', () => {
    const base = () => at('vols');
    let home: string;
    let enabled: number;

    test('is packaged, made and enabled', async () => {
      const packaging = [join(repository, 'scripts/run.mjs'), 'docker'];
      const { stdout } = await promisify(execFile)(process.execPath, packaging, { cwd: repository });
      const packaged = stdout.trimEnd().split('\n').at(-1) ?? '';
      assert.deepEqual((await readdir(packaged)).sort(), ['config.json', 'rootfs']);
      assert.deepEqual(await readdir(join(packaged, 'rootfs')), ['switchboard']);
      await docker('plugin', 'create', plugin, packaged);
      // Without its configuration it does not start, and its log says why.
      await mkdir(at('empty'));
      await docker(
        'plugin',
        'set',
        plugin,
        `config.source=${at('empty')}`,
        'SWITCHBOARD_DOCKER_DEFAULT=connection=local',
      );
      await lab.refused('plugin', 'enable', plugin);
      const plugins = join(lab.data, 'plugins');
      const [id = ''] = (await readdir(plugins)).filter((name) => /^[0-9a-f]{64}$/.test(name));
      home = join(plugins, id, 'propagated-mount');
      assert.match(await readFile(join(home, 'log/switchboard.log'), 'utf8'), /switchboard\.yaml/);
      await until(async () => !(await lab.mountPoints()).includes(home), 10_000, 'the end of the failed attempt');
      await docker('plugin', 'set', plugin, `config.source=${await configure('managed', join('/host', base()))}`);
      await docker('plugin', 'enable', plugin);
      enabled = await pluginPid();
      assert.ok((await lab.mountPoints()).includes(home));
      assert.match(await docker('plugin', 'ls'), /switchboard:test.*true/);
    });

    test('containers that share a volume, as compose makes them: up, restart, down', async () => {
      const label = 'com.docker.compose.project=shop';
      await docker('volume', 'create', '-d', plugin, '-o', 'size=20Mi', '--label', label, 'shop_data');
      for (const name of ['web', 'job']) {
        const command = `while true; do echo ${name} >> /data/${name}; sleep 1; done`;
        await docker(
          'create',
          '--name',
          name,
          '--label',
          label,
          '--network',
          'none',
          '--stop-timeout',
          '1',
          '-v',
          'shop_data:/data',
          'tiny:1',
          'sh',
          '-c',
          command,
        );
        await docker('start', name);
      }
      await grows(join(base(), 'v/shop_data/web'));
      await docker('restart', 'web');
      await grows(join(base(), 'v/shop_data/web'));
      await docker('stop', 'web');
      await grows(join(base(), 'v/shop_data/job'));
      await docker('rm', '-f', 'web', 'job');
      assert.deepEqual(await mountsIn(home), []);
      await docker('volume', 'rm', 'shop_data');
      await assertNothingLeft();
    });

    test('a Swarm service with a cluster volume: made, published, written to, read again, removed', async () => {
      await docker('swarm', 'init', '--advertise-addr', '127.0.0.1', '--listen-addr', '127.0.0.1:2377');
      await createClusterVolume('cv', '-o', 'mountFlags=noatime');
      await createService('writer', 'cv');
      await grows(join(base(), 'v/cv/lines'));
      assert.equal(
        (await mountsIn(home)).some((path) => path.includes('/published/')),
        true,
      );
      // Once: a volume of Swarm is none of `docker volume rm`, which would take it from under Swarm.
      assert.equal(await docker('volume', 'ls', '-q'), 'cv\n');
      await removeService('writer');
      const before = await linesIn(join(base(), 'v/cv/lines'));
      await createService('writer', 'cv');
      await until(
        async () => (await linesIn(join(base(), 'v/cv/lines'))) > before,
        30_000,
        'the second life of the volume',
      );
      await removeService('writer');
      await removeClusterVolume('cv');
      await assertNothingLeft();
      // A dockerd that lost count of failed attempts to enable a plugin kills it some ten seconds later, and again and again.
      assert.equal(await pluginPid(), enabled);
    });

    test('dockerd killed and started again, with a service and a container at work', async () => {
      await atWork();
      await lab.killDaemon();
      await lab.startDaemon();
      await until(
        async () => /writer.*Running/.test(await docker('service', 'ps', 'writer').catch(() => '')),
        90_000,
        'the service',
      );
      // The service first: dockerd may have unmounted the plugin's folder, and then a first attempt has the plugin started anew.
      await grows(join(base(), 'v/cv/lines'), 60_000);
      await docker('start', 'c1');
      await grows(join(base(), 'v/leg/lines'));
      await goneAgain();
    });

    test('the plugin killed, then disabled by force and enabled, with a service and a container at work', async () => {
      await atWork();
      const pid = await pluginPid();
      process.kill(pid, 'SIGKILL');
      await until(() => !existsSync(`/proc/${pid}/exe`), 10_000, 'the end of the plugin');
      await until(async () => (await docker('volume', 'ls', '-q')).includes('leg'), 30_000, 'the plugin');
      assert.match(await run('leg', 'cat /data/lines'), /x\n/);
      assert.match(await lab.refused('plugin', 'disable', plugin), /in use/);
      await docker('plugin', 'disable', '-f', plugin);
      await docker('plugin', 'enable', plugin);
      for (const volume of ['cv', 'leg']) await grows(join(base(), 'v', volume, 'lines'));
      assert.match(await run('leg', 'cat /data/lines'), /x\n/);
      await goneAgain();
    });

    test('is disabled and removed when nothing uses it', async () => {
      await docker('swarm', 'leave', '--force');
      await docker('plugin', 'disable', plugin);
      await docker('plugin', 'rm', plugin);
      assert.deepEqual(await mountsBelow(join(lab.data, 'plugins')), []);
    });

    /** The process of the plugin. On the same machine there may be those of others. */
    async function pluginPid(): Promise<number> {
      const { stdout } = await promisify(execFile)('pgrep', ['-f', '^/switchboard serve']);
      const folder = home.split('/').slice(-2).join('/');
      for (const pid of stdout.trim().split('\n')) {
        const table = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
        if (table.includes(`/${folder} /data `)) return Number(pid);
      }
      throw new Error('the plugin does not run');
    }

    const writing = ['sh', '-c', 'while true; do echo x >> /data/lines; sleep 1; done'];

    async function atWork(): Promise<void> {
      await docker('volume', 'create', '-d', plugin, 'leg');
      await docker(
        'run',
        '-d',
        '--name',
        'c1',
        '--network',
        'none',
        '--stop-timeout',
        '1',
        '-v',
        'leg:/data',
        'tiny:1',
        ...writing,
      );
      await createClusterVolume('cv');
      await createService('writer', 'cv');
      for (const volume of ['cv', 'leg']) await grows(join(base(), 'v', volume, 'lines'));
    }

    async function goneAgain(): Promise<void> {
      await docker('rm', '-f', 'c1');
      await docker('volume', 'rm', 'leg');
      await removeService('writer');
      await removeClusterVolume('cv');
      await assertNothingLeft();
    }

    async function createClusterVolume(name: string, ...options: string[]): Promise<void> {
      const size = ['--required-bytes', '10M', '--limit-bytes', '10M'];
      const shape = ['--type', 'mount', '--scope', 'single', '--sharing', 'all', ...size];
      await docker('volume', 'create', '-d', plugin, ...shape, '-o', 'connection=local', ...options, name);
    }

    async function createService(name: string, volume: string): Promise<void> {
      const mount = `type=cluster,source=${volume},target=/data`;
      const options = ['-d', '--name', name, '--network', 'host', '--stop-grace-period', '1s', '--mount', mount];
      await docker('service', 'create', ...options, 'tiny:1', ...writing);
    }

    /** Until its volume is unpublished, too. */
    async function removeService(name: string): Promise<void> {
      await docker('service', 'rm', name);
      const isGone = async () => !(await mountsIn(home)).some((path) => /\/(published|staged)\//.test(path));
      await until(isGone, 60_000, 'unpublication');
    }

    /** Swarm lets go of a volume a moment after it was unpublished. */
    async function removeClusterVolume(name: string): Promise<void> {
      await until(
        async () =>
          docker('volume', 'rm', name).then(
            () => true,
            () => false,
          ),
        30_000,
        `removal of ${name}`,
      );
      await until(async () => (await volumesIn(base())).length === 0, 30_000, `deletion of ${name}`);
    }

    async function assertNothingLeft(): Promise<void> {
      assert.deepEqual(await volumesIn(base()), []);
      assert.deepEqual(await readdir(join(base(), '.switchboard/v')), []);
      assert.deepEqual(await mountsIn(home), []);
      for (const name of ['published', 'staged', 'docker', 'state/docker/mounts', 'state/docker/volumes']) {
        assert.deepEqual(await readdir(join(home, name)).catch(() => []), [], name);
      }
      assert.equal((await docker('volume', 'ls', '-q')).trim(), '');
    }
  });

  // The last one: dockerd goes on asking a plugin that has left, and waits half a minute each time.
  describe('a plugin beside it, on a socket of its own', () => {
    test('volumes through the life of containers, and a kill -9 of the plugin in the middle', async () => {
      const config = await configure('beside', at('vols-beside'));
      const serve = () =>
        lab.spawnInside(
          [process.execPath, bundlePath, '--config', join(config, 'switchboard.yaml'), '--endpoint', at('csi.sock')],
          {
            SWITCHBOARD_STATE_DIR: at('state'),
            SWITCHBOARD_DOCKER_SOCKET: '/run/docker/plugins/beside.sock',
            SWITCHBOARD_DOCKER_DEFAULT: 'connection=local',
          },
        );
      let server = serve();
      try {
        await docker('volume', 'create', '-d', 'beside', '-o', 'size=10Mi', 'data');
        const inspected = JSON.parse(await docker('volume', 'inspect', 'data'))[0];
        assert.deepEqual([inspected.Driver, inspected.Scope, inspected.Mountpoint], ['beside', 'local', '']);
        assert.deepEqual(
          [inspected.Status.id, inspected.Status.connection, inspected.Status.size],
          ['v:local/data', 'local', '10 MiB'],
        );
        await run('data', 'echo hello > /data/greeting');
        assert.equal(await run('data', 'cat /data/greeting', '--volume-driver', 'beside'), 'hello\n');
        const refusal = await lab.refused('volume', 'create', '-d', 'beside', '-o', 'size=huge', 'other');
        assert.match(refusal, /create other: option size: "huge" is not a size/);

        await docker('run', '-d', '--name', 'c1', '--network', 'none', '-v', 'data:/data', 'tiny:1', 'sleep', '1000');
        assert.match(await lab.refused('volume', 'rm', 'data'), /volume is in use/);
        server.kill('SIGKILL');
        await once(server, 'close');
        server = serve();
        assert.equal(await run('data', 'cat /data/greeting'), 'hello\n');
        await docker('rm', '-f', 'c1');
        await docker('volume', 'rm', 'data');
        // Made by running a container that names it.
        await run('auto', 'echo x > /data/y', '--volume-driver', 'beside');
        assert.deepEqual(await volumesIn(at('vols-beside')), ['auto']);
        assert.equal(await docker('volume', 'ls', '-q'), 'auto\n');
        assert.equal(await run('local/auto', 'cat /data/y', '--volume-driver', 'beside'), 'x\n');
        await docker('volume', 'rm', 'auto');
        assert.deepEqual(await volumesIn(at('vols-beside')), []);
        assert.deepEqual(await readdir(at('state/docker/mounts')), []);
        assert.deepEqual(await mountsBelow(folder), []);
      } finally {
        server.kill('SIGTERM');
        await once(server, 'close');
      }
    });
  });

  const mountsBelow = async (path: string) => (await lab.mountPoints()).filter((point) => point.startsWith(`${path}/`));
  /** Volumes that are mounted in the plugin's folder. */
  const mountsIn = (home: string) => mountsBelow(home);
});
