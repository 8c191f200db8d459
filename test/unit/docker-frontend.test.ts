/** The protocol of the door: paths, bodies, headers, and clients that do not behave. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type RequestOptions, request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { createLogger } from '../../src/core/logger.ts';
import { createDockerFrontend, type DockerFrontend } from '../../src/frontends/docker/frontend.ts';
import { silentMeter } from '../../src/pipeline/meter.ts';
import { createPipeline } from '../../src/pipeline/pipeline.ts';
import { type World, world } from './docker-stand-in.ts';

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: Record<string, unknown>;
}

interface Served {
  readonly w: World;
  readonly frontend: DockerFrontend;
  readonly lines: string[];
  readonly socket: string;
  readonly port: number;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  ask(options: RequestOptions, body: string): Promise<Answer>;
}

async function serve(t: TestContext): Promise<Served> {
  const w = await world(t);
  const folder = await mkdtemp(join(tmpdir(), 'docker-frontend-'));
  const lines: string[] = [];
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) });
  const frontend = createDockerFrontend(w.driver, {
    pipeline: createPipeline({ log, metrics: silentMeter }),
    log,
    stateFolder: join(folder, 'state'),
    mountRoot: join(folder, 'mnt'),
    defaults: { connection: 'nas' },
    scope: undefined,
    secretsFolder: undefined,
    requireSeen: async () => {},
  });
  const socket = join(folder, 'docker.sock');
  const unix = createServer((one) => frontend.accept(one)).listen(socket);
  const tcp = createServer((one) => frontend.accept(one)).listen(0, '127.0.0.1');
  await Promise.all([once(unix, 'listening'), once(tcp, 'listening')]);
  const { port } = tcp.address() as { port: number };
  t.after(async () => {
    await frontend.stop(0);
    unix.close();
    tcp.close();
    await rm(folder, { recursive: true, force: true });
  });
  const ask: Served['ask'] = (options, body) =>
    new Promise((resolve, reject) => {
      const sent = request(options, async (response) => {
        const parts: Buffer[] = [];
        for await (const part of response) parts.push(part);
        const text = Buffer.concat(parts).toString();
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'], body: JSON.parse(text) });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const post: Served['post'] = (path, body = {}, headers = {}) =>
    ask({ socketPath: socket, method: 'POST', path, headers }, typeof body === 'string' ? body : JSON.stringify(body));
  return { w, frontend, lines, socket, port, post, ask };
}

test('the whole contract, in the order in which Docker goes', async (t) => {
  const { post } = await serve(t);
  const accept = { accept: 'application/vnd.docker.plugins.v1.2+json' };
  const activated = await post('/Plugin.Activate', '', accept);
  assert.deepEqual(activated.body, { Implements: ['VolumeDriver'], Err: '' });
  assert.deepEqual([activated.status, activated.type], [200, 'application/vnd.docker.plugins.v1.2+json']);
  assert.deepEqual((await post('/VolumeDriver.Capabilities')).body, { Capabilities: { Scope: 'global' }, Err: '' });
  assert.deepEqual((await post('/VolumeDriver.Get', { Name: 'v' })).body, { Err: 'there is no volume "v"' });
  assert.deepEqual((await post('/VolumeDriver.Create', { Name: 'v', Opts: { size: '1Mi' } })).body, { Err: '' });
  assert.deepEqual((await post('/VolumeDriver.Create', { Name: 'w', Opts: null })).body, { Err: '' });
  const { Volume: volume } = (await post('/VolumeDriver.Get', { Name: 'v' })).body as {
    Volume: { CreatedAt: string };
  };
  assert.match(volume.CreatedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
  assert.deepEqual(volume, {
    Name: 'v',
    Mountpoint: '',
    CreatedAt: volume.CreatedAt,
    Status: { id: 'v:nas/v', connection: 'nas', size: '1 MiB' },
  });
  assert.deepEqual((await post('/VolumeDriver.Path', { Name: 'v' })).body, { Err: '', Mountpoint: '' });
  const { Mountpoint: at } = (await post('/VolumeDriver.Mount', { Name: 'v', ID: 'c1' })).body;
  assert.match(String(at), /\/mnt\/v\/data$/);
  assert.deepEqual((await post('/VolumeDriver.List')).body, {
    Volumes: [
      { Name: 'v', Mountpoint: '' },
      { Name: 'w', Mountpoint: '' },
    ],
    Err: '',
  });
  assert.deepEqual((await post('/VolumeDriver.Unmount', { Name: 'v', ID: 'c1' })).body, { Err: '' });
  assert.deepEqual((await post('/VolumeDriver.Remove', { Name: 'v' })).body, { Err: '' });
});

test('failures are told in the way that Docker shows best: code 200 and one line', async (t) => {
  const { post, lines } = await serve(t);
  const { status, body } = await post('/VolumeDriver.Create', { Name: 'v', Opts: { size: 'huge' } });
  assert.equal(status, 200);
  assert.match(String(body.Err), /^option size: "huge" is not a size/);
  assert.ok(lines.some((line) => line.includes('"code":"INVALID_ARGUMENT"') && line.includes('VolumeDriver.Create')));
});

for (const [what, path, body, message] of [
  ['no JSON', '/VolumeDriver.Create', 'nonsense', /not JSON/],
  ['no object', '/VolumeDriver.Create', '"x"', /Expected Object/i],
  ['no name', '/VolumeDriver.Create', {}, /Name is required/],
  ['an empty name', '/VolumeDriver.Get', { Name: '' }, /^Name: /],
  ['a name that is too long', '/VolumeDriver.Get', { Name: 'x'.repeat(256) }, /^Name: /],
  ['a name with a line break', '/VolumeDriver.Create', { Name: 'a\nb' }, /control characters/],
  ['an option that is no text', '/VolumeDriver.Create', { Name: 'a', Opts: { size: 5 } }, /^Opts\.size: /],
  ['no id', '/VolumeDriver.Mount', { Name: 'a' }, /ID is required/],
] as const) {
  test(`a request with ${what} is refused`, async (t) => {
    const { post, w } = await serve(t);
    assert.match(String((await post(path, body)).body.Err), message);
    assert.deepEqual(w.did, []);
  });
}

test('what is not part of the protocol is not there', async (t) => {
  const { post, ask, socket } = await serve(t);
  assert.equal((await post('/VolumeDriver.Explode')).status, 404);
  assert.equal((await post('/constructor')).status, 404);
  assert.equal((await ask({ socketPath: socket, method: 'GET', path: '/VolumeDriver.List' }, '')).status, 405);
});

test('a web page cannot command it, neither over plain TCP nor by its origin', async (t) => {
  const { ask, post, port, w } = await serve(t);
  const create = JSON.stringify({ Name: 'v' });
  const overTcp = await ask({ host: '127.0.0.1', port, method: 'POST', path: '/VolumeDriver.Create' }, create);
  assert.equal(overTcp.status, 403);
  assert.equal((await post('/VolumeDriver.Create', create, { origin: 'http://evil' })).status, 403);
  assert.deepEqual(w.did, []);
});

test('a body without end is cut off, and one without a beginning keeps nobody waiting', async (t) => {
  const { post, socket, frontend } = await serve(t);
  assert.match(String((await post('/VolumeDriver.Create', 'x'.repeat(2 ** 20 + 1))).body.Err), /too long/);
  const silent: Socket = connect(socket);
  silent.write('POST /VolumeDriver.Create HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n');
  await once(silent, 'connect');
  assert.deepEqual((await post('/VolumeDriver.List')).body, { Volumes: [], Err: '' });
  const ended = once(silent, 'close');
  silent.on('error', () => {});
  await frontend.stop(0);
  await ended;
});

test('secrets that were given in the open are not logged', async (t) => {
  const { post, lines } = await serve(t);
  await post('/VolumeDriver.Create', { Name: 'v', Opts: { password: 'hunter2', token: 'hunter2' } });
  await post('/VolumeDriver.Create', { Name: 'v', Opts: { token: 'hunter2' } });
  assert.ok(lines.length > 0);
  assert.ok(!lines.join('').includes('hunter2'), lines.join(''));
});

test('a client that leaves: the volume is made all the same, and found by the next', async (t) => {
  const { w, post, socket } = await serve(t);
  const gate = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  w.before = async (operation) => {
    if (!operation.startsWith('create')) return;
    reached.resolve();
    await gate.promise;
  };
  const leaver = request({ socketPath: socket, method: 'POST', path: '/VolumeDriver.Create' });
  leaver.on('error', () => {});
  leaver.end(JSON.stringify({ Name: 'v' }));
  await reached.promise;
  leaver.destroy();
  const again = post('/VolumeDriver.Create', { Name: 'v' });
  gate.resolve();
  assert.deepEqual((await again).body, { Err: '' });
  assert.equal(w.volumes.get('nas')?.size, 1);
});

test('stopping: what runs is finished, what comes is refused', async (t) => {
  const { w, post, frontend } = await serve(t);
  const gate = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  w.before = async (operation) => {
    if (!operation.startsWith('create')) return;
    reached.resolve();
    await gate.promise;
  };
  const running = post('/VolumeDriver.Create', { Name: 'v' });
  await reached.promise;
  const stopped = frontend.stop(60_000);
  assert.deepEqual((await post('/VolumeDriver.Create', { Name: 'w' })).body, { Err: 'the plugin is stopping' });
  gate.resolve();
  assert.deepEqual((await running).body, { Err: '' });
  await stopped;
});

test('stopping at once: what runs is cancelled', async (t) => {
  const { w, post, frontend } = await serve(t);
  const reached = Promise.withResolvers<void>();
  w.before = async (_operation, call) => {
    reached.resolve();
    await once(call.signal, 'abort');
    throw call.signal.reason;
  };
  const running = assert.rejects(post('/VolumeDriver.Create', { Name: 'v' }), /socket hang up|ECONNRESET/);
  await reached.promise;
  await frontend.stop(0);
  await running;
});

test('an error of the driver is one line without a stack', async (t) => {
  const { w, post } = await serve(t);
  w.before = async () => {
    throw new CallError('UNAVAILABLE', 'nas1 does not answer');
  };
  assert.deepEqual((await post('/VolumeDriver.Create', { Name: 'v' })).body, { Err: 'nas1 does not answer' });
  w.before = async () => {
    throw new Error('a\nb');
  };
  assert.deepEqual((await post('/VolumeDriver.Create', { Name: 'v' })).body, { Err: 'a b' });
});
