import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { link, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createLogger } from '../../src/core/logger.ts';
import { parseEndpoint } from '../../src/frontends/listener/endpoints.ts';
import { type Listener, listen } from '../../src/frontends/listener/listen.ts';
import { runtimeNames, scratch, startServer } from './listener-support.ts';

interface Opened extends Listener {
  readonly connections: readonly string[];
}

const lines: string[] = [];
const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) });

/** A listener in this process that only tells what came. */
async function open(t: TestContext, endpoints: readonly string[], more: object = {}): Promise<Opened> {
  const connections: string[] = [];
  const listener = await listen({
    endpoints: endpoints.map(parseEndpoint),
    log,
    onHttp2: () => void connections.push('http2'),
    onHttp1: () => void connections.push('http1'),
    ...more,
  });
  t.after(() => listener.close());
  return { ...listener, connections };
}

async function say(to: NetConnectOpts, text: string): Promise<Socket> {
  const socket = connect(to);
  await once(socket, 'connect');
  socket.on('error', () => {});
  socket.write(text);
  return socket;
}

const refused = (path: string) => assert.rejects(say({ path }, ''), /ECONNREFUSED|ENOENT/);

for (const runtime of runtimeNames) {
  test(`${runtime}: the socket has its mode, its directory is made, and its file goes with it`, async (t) => {
    const path = join(await scratch(t), 'a/b/csi.sock');
    const server = await startServer(t, runtime, { endpoints: [path], socketMode: 0o660 });
    assert.deepEqual(server.addresses, [`unix://${path}`]);
    assert.equal((await lstat(path)).mode & 0o777, 0o660);
    assert.equal((await lstat(join(path, '..'))).mode & 0o777, 0o755);
    assert.match(server.log(), /"verbose".*made the directory/);
    const idle = await say({ path }, 'PRI');
    const busy = await say({ path }, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(busy, 'data');
    server.stop();
    await once(idle, 'close');
    assert.deepEqual(await server.next(), { stopped: true });
    await assert.rejects(lstat(path), { code: 'ENOENT' });
    busy.destroy();
    assert.deepEqual(await server.next(), { closed: true });
  });

  test(`${runtime}: a killed server's socket is taken over, a live one's never`, async (t) => {
    const path = join(await scratch(t), 'csi.sock');
    const first = await startServer(t, runtime, { endpoints: [path] });
    const second = await startServer(t, runtime, { endpoints: [path] });
    assert.match(second.first.error ?? '', /cannot listen on .*csi.sock: .*already in use: another process answers/);
    await say({ path }, '').then((socket) => socket.destroy());
    const ended = once(first.child, 'exit');
    first.child.kill('SIGKILL');
    await ended;
    assert.ok((await lstat(path)).isSocket());
    const third = await startServer(t, runtime, { endpoints: [path] });
    assert.deepEqual(third.addresses, [`unix://${path}`]);
    await say({ path }, '').then((socket) => socket.destroy());
  });

  test(`${runtime}: a file that took the socket's place is left alone`, async (t) => {
    const path = join(await scratch(t), 'csi.sock');
    const server = await startServer(t, runtime, { endpoints: [path] });
    await rename(path, `${path}.old`);
    await writeFile(path, 'precious');
    server.stop();
    assert.deepEqual([await server.next(), await server.next()], [{ stopped: true }, { closed: true }]);
    assert.equal(await readFile(path, 'utf8'), 'precious');
    assert.match(server.log(), /not the file that was made here any more/);
  });

  test(`${runtime}: an inherited socket is served, and its file stays`, async (t) => {
    const { path, server: opened } = await systemdSocket(t);
    const order = { endpoints: ['systemd:csi'] };
    const server = await startServer(t, runtime, order, { inherit: handleOf(opened), names: 'csi' });
    // Deno has no means to keep a descriptor that it was started with from its children.
    const childHasSocket = runtime === 'deno';
    assert.deepEqual(server.first, { addresses: ['systemd:csi'], variables: [], childHasSocket }, server.log());
    opened.close();
    const client = await say({ path }, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    assert.match(String((await once(client, 'data'))[0]), /^HTTP\/1.1 200/);
    client.destroy();
    server.stop();
    assert.deepEqual([await server.next(), await server.next()], [{ stopped: true }, { closed: true }]);
    assert.ok((await lstat(path)).isSocket());
  });
}

/** A listening socket as systemd would make it; the file is a second name, since the first goes when this process closes its copy. */
async function systemdSocket(t: TestContext): Promise<{ path: string; server: Server }> {
  const path = join(await scratch(t), 'csi.sock');
  const server = createServer().listen(`${path}.made`);
  await once(server, 'listening');
  await link(`${path}.made`, path);
  t.after(() => void (server.listening && server.close()));
  return { path, server };
}

function handleOf(server: Server): Socket {
  return (server as unknown as { readonly _handle: Socket })._handle;
}

test('inherited: the wrong name, none at all, no socket', async (t) => {
  const { server } = await systemdSocket(t);
  const wrong = await startServer(t, 'node', { endpoints: ['systemd:csi'] }, { inherit: handleOf(server), names: 'x' });
  assert.match(wrong.first.error ?? '', /cannot listen on systemd:csi: no socket of that name was handed over, only x/);
  const none = await startServer(t, 'node', { endpoints: ['systemd'] });
  assert.match(none.first.error ?? '', /cannot listen on systemd: no socket was handed over/);
  const bad = await startServer(t, 'node', { endpoints: ['systemd'] }, { inherit: 2, names: '' });
  assert.match(bad.first.error ?? '', /the inherited socket 3 is not a listening stream socket/);
});

test('inherited: TCP for everybody needs encryption, TCP for this host does not', async (t) => {
  for (const [host, expected] of [
    ['0.0.0.0', /--allow-insecure-tcp/],
    ['127.0.0.1', undefined],
  ] as const) {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    t.after(() => server.close());
    const { first } = await startServer(t, 'node', { endpoints: ['systemd'] }, { inherit: handleOf(server) });
    if (expected) assert.match(first.error ?? '', expected);
    else assert.match(first.addresses?.[0] ?? '', /^tcp:\/\/127\.0\.0\.1:\d+$/);
  }
});

test('what is no socket is never removed', async (t) => {
  const directory = await scratch(t);
  const live = createServer().listen(join(directory, 'live'));
  await once(live, 'listening');
  t.after(() => live.close());
  await writeFile(join(directory, 'file'), 'precious');
  await mkdir(join(directory, 'directory'));
  await symlink('file', join(directory, 'link'));
  await symlink('nowhere', join(directory, 'dangling'));
  await symlink('live', join(directory, 'to-a-socket'));
  execFileSync('mkfifo', [join(directory, 'fifo')]);
  const before = await readdir(directory);
  for (const [name, why] of [
    ['file', /is a file, not a socket, and is left alone/],
    ['directory', /is a directory, not a socket/],
    ['link', /is a symbolic link, not a socket/],
    ['dangling', /is a symbolic link, not a socket/],
    ['to-a-socket', /is a symbolic link, not a socket/],
    ['fifo', /is a file, not a socket/],
    ['live', /already in use/],
    ['file/x', /cannot listen on/],
  ] as const) {
    await assert.rejects(open(t, [join(directory, name)]), (error: Error) => {
      assert.match(error.message, why);
      assert.ok(error.message.includes(join(directory, name)));
      return true;
    });
  }
  assert.deepEqual(await readdir(directory), before);
  assert.equal(await readFile(join(directory, 'file'), 'utf8'), 'precious');
});

test('a socket that is alive in another way is not removed', async (t) => {
  const path = join(await scratch(t), 'log');
  const script = 'import socket,sys; s=socket.socket(1,2); s.bind(sys.argv[1]); print(1,flush=True); sys.stdin.read()';
  const datagrams = spawn('python3', ['-c', script, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(datagrams, 'exit');
  t.after(() => datagrams.kill());
  await once(datagrams.stdout, 'data');
  await assert.rejects(open(t, [path]), /cannot listen on .*log: .*EPROTOTYPE/);
  assert.ok((await lstat(path)).isSocket());
  datagrams.stdin.end();
  await ended;
});

test('two that start at once on a dead socket: one of them serves, the other is told', async (t) => {
  const path = join(await scratch(t), 'csi.sock');
  execFileSync('python3', ['-c', 'import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])', path]);
  const outcomes = await Promise.allSettled([open(t, [path]), open(t, [path]), open(t, [path])]);
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  await say({ path }, '').then((socket) => socket.destroy());
});

test('a default ACL on the directory does not widen the mode', async (t) => {
  const directory = await scratch(t);
  execFileSync('setfacl', ['-d', '-m', 'u::rwx,g::rwx,o::rwx', directory]);
  await open(t, [join(directory, 'csi.sock')]);
  assert.equal((await lstat(join(directory, 'csi.sock'))).mode & 0o777, 0o600);
});

test('several endpoints are opened, or none', async (t) => {
  const directory = await scratch(t);
  const paths = ['a', 'b', 'c'].map((name) => join(directory, name));
  const listener = await open(t, [paths[0]!, paths[1]!, 'localhost:0', '[::1]:0', '127.9.9.9:0']);
  assert.equal(listener.addresses.length, 5);
  assert.match(
    listener.addresses.join(' '),
    /tcp:\/\/(127\.0\.0\.1|\[::1\]):\d+ tcp:\/\/\[::1\]:\d+ tcp:\/\/127\.9\.9\.9:\d+/,
  );
  const port = Number(/:(\d+)$/.exec(listener.addresses[4]!)?.[1]);
  const client = await say({ host: '127.9.9.9', port }, 'GET');
  while (listener.connections.length < 1) await new Promise(setImmediate);
  assert.deepEqual(listener.connections, ['http1']);
  await assert.rejects(open(t, [paths[2]!, `127.9.9.9:${port}`]), /cannot listen on 127.9.9.9:\d+: .*EADDRINUSE/);
  assert.deepEqual(await readdir(directory), ['a', 'b']);
  await assert.rejects(open(t, []), /no endpoint/);
  await listener.close();
  await once(client, 'close');
  assert.deepEqual(await readdir(directory), []);
  for (const path of paths) await refused(path);
});

test('plaintext for other hosts is refused, or allowed aloud', async (t) => {
  for (const endpoint of ['0.0.0.0:0', ':0', '[::]:0']) {
    await assert.rejects(open(t, [endpoint]), { code: 'FAILED_PRECONDITION', message: /--server-tls-cert/ });
  }
  lines.length = 0;
  await open(t, ['0.0.0.0:0'], { allowInsecureTcp: true });
  assert.match(lines.join(''), /"warn".*INSECURE: 0\.0\.0\.0:0 accepts/);
  await assert.rejects(
    open(t, ['no-such-host.invalid:1']),
    /cannot listen on no-such-host.invalid:1: .*(ENOTFOUND|EAI_AGAIN)/,
  );
});

test('a client that never speaks is cut off in time', async (t) => {
  const path = join(await scratch(t), 'csi.sock');
  const listener = await open(t, [path], { firstBytesLimitMs: 50 });
  for (const text of ['', 'P', 'PRI * HTTP/2.']) await once((await say({ path }, text)).resume(), 'close');
  assert.deepEqual(listener.connections, []);
});

test('a flood of silent clients does not keep another out', async (t) => {
  const path = join(await scratch(t), 'csi.sock');
  const listener = await open(t, [path]);
  const first = await say({ path }, '');
  const flood: Socket[] = [];
  for (let i = 0; i < 256; i++) flood.push(await say({ path }, ''));
  await once(first.resume(), 'close');
  flood.push(await say({ path }, 'GET'));
  while (listener.connections.length < 1) await new Promise(setImmediate);
  await listener.close();
  for (const socket of flood) socket.destroy();
});

test('a handler that throws costs its connection only', async (t) => {
  const path = join(await scratch(t), 'csi.sock');
  const fail = () => {
    throw new Error('handler');
  };
  await open(t, [path], { onHttp1: fail, onHttp2: fail });
  for (const text of ['GET', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']) {
    await once((await say({ path }, text)).resume(), 'close');
  }
  await rm(path);
});
