/** The units of examples/systemd, under a real systemd. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { repository } from '../../scripts/lib/repository.ts';
import { until } from './server-under-test.ts';
import { bootSystemd } from './systemd-host.ts';

const execute = promisify(execFile);
const missing = (process.env.SWITCHBOARD_MISSING ?? '').split(',');
const needs = (...names: string[]) => {
  const lacking = names.filter((name) => missing.includes(name));
  return process.getuid?.() !== 0 ? 'needs root' : lacking.length > 0 && `needs ${lacking.join(', ')}`;
};

test('systemd finds nothing wrong with the units', { skip: needs('systemd-analyze') }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'units-'));
  t.after(() => rm(folder, { recursive: true }));
  const units: string[] = [];
  for await (const file of glob('examples/systemd/*.{service,socket}', { cwd: repository })) {
    const unit = join(folder, basename(file));
    // The program need not be installed.
    const text = await readFile(join(repository, file), 'utf8');
    await writeFile(unit, text.replaceAll('/usr/local/bin/switchboard', '/bin/true'));
    units.push(unit);
  }
  assert.ok(units.length >= 4);
  const { stdout, stderr } = await execute('systemd-analyze', ['verify', ...units]);
  assert.equal(`${stdout}${stderr}`, '');
});

test('under systemd', { skip: needs('systemd-analyze', 'unshare') }, async (t) => {
  const host = await bootSystemd(t);
  if (host === undefined) return t.skip('no systemd can be started in namespaces here (not in CI)');
  const { run, property } = host;
  const node = 'switchboard-node.service';
  const ctl = (...args: string[]) => run('/usr/local/bin/switchboard', 'ctl', ...args);
  const mainPid = (unit: string) => property(unit, 'MainPID');

  await t.test('starting waits until the node serves, in the mount namespace of the host', async () => {
    await run('systemctl', 'start', node);
    assert.equal(await property(node, 'StatusText'), 'Serving on unix:///run/switchboard/node.sock');
    await run('/usr/local/bin/switchboard', 'probe', '--endpoint', 'unix:///run/switchboard/node.sock');
    const pid = await mainPid(node);
    assert.equal(await run('readlink', `/proc/${pid}/ns/mnt`), await run('readlink', '/proc/1/ns/mnt'));
    const environment = await run('cat', `/proc/${pid}/environ`);
    assert.match(environment, /NOTIFY_SOCKET=/, 'it was there to be taken');
  });

  await t.test('a reload looks at the connection files', async () => {
    await run('systemctl', 'reload', node);
    assert.equal(await property(node, 'ActiveState'), 'active');
  });

  await t.test('the watchdog is told of life, and ends a node that hangs', async () => {
    await host.dropIn(node, '[Service]\nWatchdogSec=1\n');
    await run('systemctl', 'restart', node);
    const told = () => property(node, 'WatchdogTimestampMonotonic');
    const atStart = await told();
    await until(async () => (await told()) !== atStart);
    await run('kill', '-STOP', await mainPid(node));
    await until(async () => (await property(node, 'NRestarts')) === '1');
    await until(async () => (await property(node, 'ActiveState')) === 'active');
    await host.dropIn(node, '');
  });

  await t.test('volumes stay mounted and usable when the service is restarted, with what serves them', async () => {
    const unit = 'switchboard.service';
    await run('systemctl', 'stop', node);
    await run('systemctl', 'start', unit);
    await ctl('create', 'data', '--connection', 'local', '--size', '1Mi');
    await ctl('stage', 'v:local/data', '/run/csi/staging');
    await ctl('publish', 'v:local/data', '/run/csi/data', '--staging', '/run/csi/staging');
    await run('sh', '-c', 'echo kept > /run/csi/data/file');
    // A daemon of the service's, such as those of FUSE file systems.
    const started = await run('sh', '-c', 'exec >/dev/null 2>&1; sleep 1000 & exec >/run/daemon; echo $!');
    assert.equal(started, '');
    const daemon = (await run('cat', '/run/daemon')).trim();
    const group = await property(unit, 'ControlGroup');
    await run('sh', '-c', `echo ${daemon} > /sys/fs/cgroup${group}/cgroup.procs`);

    const before = await mainPid(unit);
    await run('kill', '-KILL', before);
    await run('systemctl', 'restart', unit);
    assert.notEqual(await mainPid(unit), before);
    await run('kill', '-0', daemon);
    assert.equal(await run('cat', '/run/csi/data/file'), 'kept\n');
    await run('sh', '-c', 'echo written > /run/csi/data/file');
    await ctl('unpublish', 'v:local/data', '/run/csi/data');
    await ctl('unstage', 'v:local/data', '/run/csi/staging');
    await ctl('delete', 'v:local/data');
    assert.doesNotMatch(await run('cat', '/proc/1/mountinfo'), / \/run\/csi\/./);
    await run('systemctl', 'stop', unit);
    await run('kill', '-0', daemon);
    await run('kill', daemon);
  });

  await t.test('a socket of systemd starts the service and outlives it', async () => {
    await run('systemctl', 'start', 'switchboard.socket');
    assert.equal(await property('switchboard.service', 'ActiveState'), 'inactive');
    assert.match(await ctl('info', '--endpoint', 'unix:///run/switchboard/csi.sock'), /org\.switchboard\.csi/);
    assert.equal(await property('switchboard.service', 'StatusText'), 'Serving on systemd:csi');
    const [restarted] = await Promise.all([ctl('info'), run('systemctl', 'restart', 'switchboard.service')]);
    assert.match(restarted, /org\.switchboard\.csi/);
    await run('systemctl', 'stop', 'switchboard.socket', 'switchboard.service');
  });

  await t.test('the controller works in its confinement', async () => {
    const unit = 'switchboard-controller.service';
    await run('systemctl', 'start', unit);
    assert.equal(await property(unit, 'StatusText'), 'Serving on unix:///run/switchboard/controller.sock');
    const info = await ctl('info', '--endpoint', 'unix:///run/switchboard/controller.sock');
    assert.match(info, /CONTROLLER_SERVICE/);
    // Only the state can be written, so a volume in a directory of the host is refused, in words.
    await assert.rejects(
      ctl(
        'create',
        'x',
        '--connection',
        'local',
        '--size',
        '1',
        '--endpoint',
        'unix:///run/switchboard/controller.sock',
      ),
      /read-only|EROFS/i,
    );
    await run('systemctl', 'stop', unit);
    assert.equal(await property(unit, 'Result'), 'success');
  });
});
