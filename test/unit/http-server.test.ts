/** The HTTP server against clients that do not behave. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createLogger } from '../../src/core/logger.ts';
import { createHttpServer, plain, type Reply } from '../../src/frontends/http/http-server.ts';

interface Options {
  readonly answer?: (path: string) => Promise<Reply>;
  readonly connectionLimitMs?: number;
}

async function serve(t: TestContext, { answer = async (path) => plain(200, path), connectionLimitMs }: Options = {}) {
  const lines: string[] = [];
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) });
  const server = createHttpServer({ answer, log, connectionLimitMs });
  const listener = createServer((socket) => server.accept(socket));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => {
    server.close();
    listener.close();
  });
  const { port } = listener.address() as AddressInfo;
  const open = (): Socket => connect(port, '127.0.0.1').on('error', () => {});
  return { open, lines, server, say: (bytes: string) => exchange(open(), bytes) };
}

/** What comes back until the server closes the connection. */
async function exchange(socket: Socket, bytes: string): Promise<string> {
  let said = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    said += chunk;
  });
  socket.write(bytes);
  await once(socket, 'close');
  return said;
}

const statusOf = (said: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(said)?.[1]);
const bodyOf = (said: string) => said.slice(said.indexOf('\r\n\r\n') + 4);

test('one request a connection, by path, in the forms a client may write it', async (t) => {
  const { say } = await serve(t);
  for (const [target, path] of [
    ['/metrics', '/metrics'],
    ['/metrics?x=/y', '/metrics'],
    ['http://elsewhere:1/status.json?a', '/status.json'],
    ['http://elsewhere', '/'],
    ['/?', '/'],
  ]) {
    const said = await say(
      `GET ${target} HTTP/1.1\r\nHost: anything at all\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    assert.equal(statusOf(said), 200);
    assert.equal(bodyOf(said), `${path}\n`);
    assert.match(said, /\r\nconnection: close\r\n/i);
  }
});

test('HEAD has the headers alone', async (t) => {
  const { say } = await serve(t);
  const said = await say('HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(said, /\r\ncontent-length: 5\r\n/);
  assert.equal(bodyOf(said), '');
});

test('what is told is not for other pages, frames or caches', async (t) => {
  const { say } = await serve(t);
  const said = await say('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  for (const header of [
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'x-frame-options: DENY',
    "content-security-policy: default-src 'none'; frame-ancestors 'none'",
    'referrer-policy: no-referrer',
  ]) {
    assert.ok(said.includes(`\r\n${header}\r\n`), header);
  }
});

const refused: Readonly<Record<string, readonly [request: string, status: number]>> = {
  'another method': ['POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n', 405],
  'a method nobody knows': ['BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  'a body': [`GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n${'x'.repeat(10_000)}`, 413],
  'a body in chunks': ['GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n', 413],
  'a body that is announced': ['GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n', 413],
  'a long header': [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(9000)}\r\n\r\n`, 431],
  'many headers': [`GET / HTTP/1.1\r\nHost: x\r\n${'X: x\r\n'.repeat(3000)}\r\n`, 431],
  'a length twice': ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
  'no HTTP at all': ['\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\r\n\r\n', 400],
};

for (const [what, [request, status]] of Object.entries(refused)) {
  test(`${what} is refused with ${status}, and the connection closed`, async (t) => {
    const { say } = await serve(t, { answer: () => assert.fail('it must not get that far') });
    assert.equal(statusOf(await say(request)), status);
  });
}

test('who is slow to ask is cut off', async (t) => {
  const { say } = await serve(t, { connectionLimitMs: 50 });
  assert.equal(await say('GET / HTTP/1.1\r\nHo'), '');
});

test('who is slow to read is cut off', async (t) => {
  const { open } = await serve(t, {
    answer: async () => plain(200, 'x'.repeat(50_000_000)),
    connectionLimitMs: 200,
  });
  const socket = open();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'readable');
  // It reads no further, and learns that it was cut off by what it writes: empty lines, which HTTP lets pass between requests.
  const nudges = setInterval(() => socket.write('\r\n'), 20);
  t.after(() => clearInterval(nudges));
  const [error] = await once(socket, 'error').catch((thrown: unknown) => [thrown]);
  assert.match(String(error), /EPIPE|ECONNRESET/);
  assert.ok(socket.bytesRead < 50_000_000, 'it was not waited for');
});

test('a crowd of silent clients does not keep others out', async (t) => {
  const { open, say } = await serve(t);
  const crowd = Array.from({ length: 300 }, () => {
    const socket = open();
    socket.write('GET / HTTP/1.1\r\nHo');
    return socket;
  });
  t.after(() => {
    for (const socket of crowd) socket.destroy();
  });
  await Promise.all(crowd.map((socket) => once(socket, 'connect')));
  assert.equal(statusOf(await say('GET / HTTP/1.1\r\nHost: x\r\n\r\n')), 200);
});

test('a page that fails is 500 without the reason, which is in the log', async (t) => {
  const { say, lines } = await serve(t, { answer: () => Promise.reject(new Error('it is secret')) });
  const said = await say('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.equal(statusOf(said), 500);
  assert.doesNotMatch(said, /secret/);
  assert.match(lines.join(''), /it is secret/);
});

test('a client that leaves before its answer is no trouble, and closing ends those that are left', async (t) => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Reply>();
  const { open, server, say } = await serve(t, {
    answer: (path) => {
      if (path !== '/slow') return Promise.resolve(plain(200, path));
      asked.resolve();
      return answer.promise;
    },
  });
  const socket = open();
  socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await asked.promise;
  socket.destroy();
  answer.resolve(plain(200, 'late'));
  assert.equal(statusOf(await say('GET / HTTP/1.1\r\nHost: x\r\n\r\n')), 200);
  const left = open();
  left.write('GET');
  await once(left, 'connect');
  assert.equal(statusOf(await say('GET / HTTP/1.1\r\nHost: x\r\n\r\n')), 200);
  server.close();
  await once(left.resume(), 'close');
});
