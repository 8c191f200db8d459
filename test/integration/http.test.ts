/** The HTTP door of a real server: metrics, health, status, and who may read them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { hangingCopies, type Site, startSite } from './http-support.ts';

/** Samples of Prometheus' text format: `name{labels}` → value. */
function samples(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

const metricsOf = async (site: Site, path = '/metrics') => samples((await site.get(path)).text);

test('there is no HTTP door unless it is asked for', async (t) => {
  const site = await startSite(t);
  assert.match(site.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const without = await startSite(t, { endpoint: '' });
  assert.deepEqual(without.server.httpAddresses, []);
});

test('calls are counted by method, code, connection and driver, and what was asked of the host', async (t) => {
  const site = await startSite(t);
  assert.equal((await site.ctl('create', 'data', '--connection', 'local', '--size', '1Mi')).code, 0);
  assert.equal((await site.ctl('snapshot', 'v:local/data', 'one')).code, 0);
  assert.equal((await site.ctl('snapshot', 'v:local/none', 'two')).code, 1);
  const { status, headers, text } = await site.get('/metrics');
  assert.equal(status, 200);
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  const found = samples(text);
  const calls = (method: string, code: string) =>
    found.get(
      `csi_plugin_operations_seconds_count{driver_name="org.example.test",method_name="${method}",grpc_status_code="${code}",connection="local",driver="local-hostpath"}`,
    );
  assert.equal(calls('CreateVolume', 'OK'), 1);
  assert.equal(calls('CreateSnapshot', 'OK'), 1);
  assert.equal(calls('CreateSnapshot', 'NOT_FOUND'), 1);
  const copies = 'switchboard_backend_request_duration_seconds_count{backend="exec",request="cp",outcome="ok"}';
  assert.equal(found.get(copies), 1);
  assert.equal(found.get('switchboard_calls_in_flight{method_name="CreateVolume"}'), 0);
  assert.equal(found.get('switchboard_ready'), 1);
  assert.equal(found.get('switchboard_oldest_call_age_seconds'), 0);
  assert.match(text, /^switchboard_build_info\{version="[^"]+",commit="[^"]+"\} 1$/m);
  for (const name of ['process_resident_memory_bytes', 'process_cpu_seconds_total', 'process_open_fds']) {
    assert.ok((found.get(name) ?? 0) > 0, name);
  }
  assert.ok(found.has('process_start_time_seconds') && found.has('nodejs_eventloop_lag_p99_seconds'));
});

test('the state of a connection is told without its being used', async (t) => {
  const site = await startSite(t, { connections: { a: undefined, b: undefined } });
  const states = async () => {
    const found = [...(await metricsOf(site))].filter(([, value]) => value === 1);
    return found.flatMap(
      ([name]) => /^switchboard_connection_state\{connection="(\w)",state="(\w+)"\}/.exec(name)?.[0] ?? [],
    );
  };
  assert.deepEqual(await states(), [
    'switchboard_connection_state{connection="a",state="ok"}',
    'switchboard_connection_state{connection="b",state="ok"}',
  ]);
  await site.connect('a', 'driver: nothing\n');
  await rm(join(site.folder, 'connections/b.yaml'));
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 10_000 });
  assert.deepEqual(await states(), ['switchboard_connection_state{connection="a",state="broken"}']);
});

test('free space is asked only of who asks for it', async (t) => {
  const site = await startSite(t, { connections: { good: undefined, never: 'driver: nothing\n' } });
  const found = await metricsOf(site, '/metrics/capacity');
  assert.ok((found.get('switchboard_connection_available_bytes{connection="good"}') ?? 0) > 0);
  assert.equal(found.get('switchboard_connection_answers{connection="good"}'), 1);
  assert.equal(
    [...found.keys()].some((name) => name.includes('never')),
    false,
  );
  assert.equal(
    [...(await metricsOf(site)).keys()].some((name) => name.startsWith('switchboard_connection_available')),
    false,
  );
});

test('ready, and not ready with the reason; alive all the time', async (t) => {
  const site = await startSite(t);
  assert.deepEqual([(await site.get('/readyz')).status, (await site.get('/readyz')).text], [200, 'ok\n']);
  const folder = join(site.folder, 'connections');
  await rename(folder, `${folder}.away`);
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 10_000 });
  const { status, text } = await site.get('/readyz');
  assert.equal(status, 503);
  assert.equal(text, `the folder of connections, ${folder}, cannot be read (ENOENT)\n`);
  assert.equal((await site.get('/healthz')).text, 'ok\n');
  assert.equal((await metricsOf(site)).get('switchboard_ready'), 0);
  await rename(`${folder}.away`, folder);
  t.mock.timers.setTime(Date.now() + 10_000);
  assert.equal((await site.get('/readyz')).status, 200);
});

test('a call that hangs shows at once: how long, and what it waits for', async (t) => {
  const site = await startSite(t);
  await site.ctl('create', 'data', '--connection', 'local', '--size', '1Mi');
  const reached = await hangingCopies(site);
  const snapshot = site.ctl('snapshot', 'v:local/data', 'one');
  await reached();
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 });
  const status = await site.status();
  const [call] = status.calls;
  assert.ok(call);
  assert.deepEqual(
    [call.method, call.subject, call.details, call.connection, call.waitingFor, call.stuck],
    ['CreateSnapshot', 'one', { sourceVolumeId: 'v:local/data' }, 'local', 'copy of volume data', true],
  );
  assert.deepEqual(
    status.attention.map(({ kind, about }) => [kind, about]),
    [['stuck', 'CreateSnapshot one on local']],
  );
  const found = await metricsOf(site);
  assert.equal(found.get('switchboard_calls_in_flight{method_name="CreateSnapshot"}'), 1);
  assert.equal(found.get('switchboard_operations_in_flight{connection="local"}'), 1);
  assert.ok((found.get('switchboard_oldest_call_age_seconds') ?? 0) >= 60);
  await site.server.stop(0);
  assert.equal((await snapshot).code, 1);
});

test('while the server stops, it can be read and is not ready; then the door is closed', async (t) => {
  const site = await startSite(t);
  await site.ctl('create', 'data', '--connection', 'local', '--size', '1Mi');
  const reached = await hangingCopies(site);
  const snapshot = site.ctl('snapshot', 'v:local/data', 'one');
  await reached();
  const stopped = site.server.stop(60_000);
  assert.deepEqual(
    [(await site.get('/readyz')).status, (await site.get('/readyz')).text],
    [503, 'the plugin is stopping\n'],
  );
  assert.equal((await site.status()).calls.length, 1);
  void site.server.stop(0);
  await stopped;
  await snapshot;
  await assert.rejects(fetch(`${site.url}/healthz`));
});

test('no secret is on any page, whatever failed with it', async (t) => {
  const site = await startSite(t);
  const secret = ['--secret', 'password=hunter2'];
  const create = (...args: string[]) => site.ctl('create', 'data', '--size', '1Mi', ...secret, ...args);
  assert.equal((await create('--connection', 'local')).code, 0);
  assert.equal((await create('--connection', 'none')).code, 1);
  assert.equal((await create('--connection', 'local', '--param', 'password=hunter2')).code, 1);
  assert.equal((await site.ctl('snapshot', 'v:local/none', 'one', ...secret)).code, 1);
  assert.equal((await site.status()).failures.length, 3);
  for (const path of ['/', '/status.json', '/metrics', '/metrics/capacity', '/readyz', '/healthz', '/nothing']) {
    assert.doesNotMatch((await site.get(path)).text, /hunter2/, path);
  }
});

test('paths: what there is, and what there is not', async (t) => {
  const site = await startSite(t);
  assert.equal((await site.get('/metrics?name[]=x')).status, 200);
  for (const path of ['/constructor', '/__proto__', '//', '/metrics/', '/../etc/passwd', '/%00']) {
    const { status, text } = await site.get(path);
    assert.equal(status, 404, path);
    assert.match(text, /^There is: \/, \/status\.json, /);
  }
  const posted = await site.get('/', { method: 'POST', body: 'x' });
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD']);
  assert.equal(await site.raw('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), '');
});

test('a unix socket, for its owner alone', async (t) => {
  const path = join('/tmp', `http-door-${process.pid}.sock`);
  t.after(() => rm(path, { force: true }));
  const site = await startSite(t, { endpoint: `unix://${path}` });
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const status = await new Promise((resolve, reject) => {
    request({ socketPath: path, path: '/healthz' }, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end();
  });
  assert.equal(status, 200);
  await site.server.stop(0);
  await assert.rejects(stat(path), { code: 'ENOENT' });
});

test('other hosts may not read it unless that is said, and then the log warns', async (t) => {
  const opening = startSite(t, { endpoint: 'tcp://0.0.0.0:0' });
  await assert.rejects(opening, (error) => {
    assert.ok(error instanceof CallError);
    assert.match(error.message, /^cannot listen on tcp:\/\/0\.0\.0\.0:0: .*--http-allow-remote$/);
    return true;
  });
  const site = await startSite(t, { endpoint: 'tcp://0.0.0.0:0', allowRemote: true });
  const warning = site.log.find(({ level }) => level === 'warn');
  assert.match(
    String(warning?.message),
    /^INSECURE: tcp:\/\/0\.0\.0\.0:0 lets anybody .* read .*\(--http-allow-remote\)$/,
  );
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  const port = new URL(site.url).port;
  const response = await fetch(`http://${outside ?? '127.0.0.1'}:${port}/healthz`);
  assert.equal(await response.text(), 'ok\n');
});

test('an address that is taken is an error that names it', async (t) => {
  const first = await startSite(t);
  const endpoint = first.url.replace('http:', 'tcp:');
  await assert.rejects(startSite(t, { endpoint }), (error) => {
    assert.match(String(error), new RegExp(`cannot listen on ${endpoint}: .*EADDRINUSE`));
    return true;
  });
});

test('a direct driver is told as the one storage there is', async (t) => {
  const site = await startSite(t, { direct: true });
  assert.equal((await site.ctl('create', 'data', '--size', '1Mi')).code, 0);
  const { connections, node, plugin } = await site.status();
  assert.deepEqual(
    connections.map(({ name, driver, state, capacity }) => [name, driver, state, capacity.state]),
    [['', 'local-hostpath', 'ok', 'known']],
  );
  assert.equal(node?.nodeId, 'worker-3');
  assert.equal(plugin.driver, 'local-hostpath');
  assert.match((await site.get('/')).text, /<th scope="row"[^>]*>the only one/);
  assert.equal((await metricsOf(site, '/metrics/capacity')).get('switchboard_connection_answers{connection=""}'), 1);
});

test('sockets that systemd opened: one for the orchestrator, one for readers', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'http-systemd-'));
  const reading = createServer().listen(0, '127.0.0.1');
  const servers = [createServer().listen(join(folder, 'csi.sock')), reading];
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const port = (reading.address() as AddressInfo).port;
  const program = join(import.meta.dirname, '../../src/main.ts');
  const command = [process.execPath, program, '--endpoint', 'systemd:csi', '--http-endpoint', 'systemd:http'];
  const child = spawn(
    'sh',
    ['-c', 'LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=csi:http exec "$@"', 'sh', ...command, '--log-format', 'json'],
    {
      env: { PATH: process.env.PATH, SWITCHBOARD_STATE_DIR: join(folder, 'state') },
      stdio: ['ignore', 'pipe', 'ignore', ...servers.map(handleOf)],
    },
  );
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
    await rm(folder, { recursive: true, force: true });
  });
  assert.ok(child.stdout);
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), closed]);
  // Otherwise it would be this process that accepts.
  for (const server of servers) server.close();
  const ready: { addresses?: string[]; http?: string[] } = JSON.parse(String(line));
  assert.deepEqual([ready.addresses, ready.http], [['systemd:csi'], [`http://127.0.0.1:${port}`]]);
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text(), 'ok\n');
});

/** What a child can be given as a file descriptor. */
function handleOf(server: Server): Socket {
  return (server as unknown as { readonly _handle: Socket })._handle;
}

/** A page is made while calls run; that must never disturb them. */
test('many readers at once', async (t) => {
  const site = await startSite(t);
  const paths = ['/', '/status.json', '/metrics', '/readyz', '/metrics/capacity'];
  const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => site.get(paths[i % paths.length] ?? '/')));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.deepEqual(
    site.log.filter(({ level }) => level === 'warn' || level === 'error'),
    [],
  );
});
