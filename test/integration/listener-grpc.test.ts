import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import fc from 'fast-check';
import {
  codedPath,
  frame,
  goaway,
  literal,
  message,
  preface,
  readAnswer,
  requestHeaders,
  settings,
  settingsAck,
  text,
} from '../unit/listener-http2.ts';
import { type Runtime, runtimeNames, scratch, startServer, type TestServer } from './listener-support.ts';

const same = (bytes: Buffer) => bytes;
const turn = () => new Promise(setImmediate);

async function serve(t: TestContext, runtime: Runtime): Promise<{ server: TestServer; path: string }> {
  const path = join(await scratch(t), 'csi.sock');
  const server = await startServer(t, runtime, { endpoints: [path] });
  assert.deepEqual(server.first.addresses, [`unix://${path}`], server.log());
  return { server, path };
}

function call(client: Client, body: Buffer, method = 'Echo'): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 20_000;
    client.makeUnaryRequest(
      `/test.Test/${method}`,
      same,
      same,
      body,
      { deadline },
      (error: ServiceError | null, value) => (error ? reject(error) : resolve(value)),
    );
  });
}

/** Writes the pieces one by one and gives back what came of it. */
async function converse(path: string, pieces: readonly Buffer[], wanted = 1) {
  const socket = connect(path);
  const answer = readAnswer(socket, wanted);
  for (const piece of pieces) {
    socket.write(piece);
    await turn();
  }
  const outcome = await answer;
  socket.destroy();
  return outcome;
}

const body = Buffer.from('hello');
const echoed = message(1, body).subarray(9);
const authority = (coded: boolean) => literal(1, coded ? text(codedPath, true) : text('/csi/csi.sock'));
const oldClient = (coded: boolean) =>
  Buffer.concat([preface, settings, frame(1, 4, 1, requestHeaders(authority(coded))), settingsAck, message(1, body)]);

for (const runtime of runtimeNames) {
  test(`${runtime}: a gRPC client calls, small and large, one by one and at once`, async (t) => {
    const { server, path } = await serve(t, runtime);
    const client = new Client(`unix:${path}`, credentials.createInsecure());
    t.after(() => client.close());
    for (const size of [0, 1, 16_384, 3 << 20]) {
      const bytes = Buffer.alloc(size, 7);
      assert.ok((await call(client, bytes))?.equals(bytes), `${size} bytes`);
    }
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => call(client, Buffer.from(`${i}`))));
    assert.deepEqual(
      answers.map(String),
      Array.from({ length: 200 }, (_, i) => `${i}`),
    );
    await assert.rejects(call(client, body, 'Fail'), { code: 10, details: 'as asked' });
    await assert.rejects(call(client, body, 'Missing'), { code: 12 });
    assert.deepEqual(server.crashes(), []);
  });

  test(`${runtime}: an old client that sends the socket's path as :authority is served`, async (t) => {
    const { server, path } = await serve(t, runtime);
    for (const coded of [false, true]) {
      assert.deepEqual(await converse(path, [oldClient(coded)]), { status: 'answered', data: echoed });
    }
    const again = Buffer.concat([
      oldClient(true),
      // The same field again by its place in the table of recent headers: 62 is the newest, which is the path just sent.
      frame(1, 4, 3, requestHeaders(Buffer.from([0x80 | 63]))),
      message(3, body),
    ]);
    assert.deepEqual(await converse(path, [again], 2), { status: 'answered', data: Buffer.concat([echoed, echoed]) });
    assert.deepEqual(server.crashes(), []);
  });

  test(`${runtime}: a request cut at any byte is answered the same`, async (t) => {
    const { server, path } = await serve(t, runtime);
    const sent = oldClient(true);
    const cuts = Array.from({ length: sent.length - 1 }, (_, i) => i + 1);
    for (let i = 0; i < cuts.length; i += 16) {
      const some = cuts.slice(i, i + 16);
      const answers = await Promise.all(some.map((at) => converse(path, [sent.subarray(0, at), sent.subarray(at)])));
      for (const answer of answers) assert.deepEqual(answer, { status: 'answered', data: echoed });
    }
    const single = [...sent].map((byte) => Buffer.from([byte]));
    assert.deepEqual(await converse(path, single), { status: 'answered', data: echoed });
    assert.deepEqual(server.crashes(), []);
  });

  test(`${runtime}: a client that waits for the server's settings before it speaks is served`, async (t) => {
    const { path } = await serve(t, runtime);
    const socket = connect(path);
    socket.write(Buffer.concat([preface, settings]));
    await once(socket, 'readable');
    const answer = readAnswer(socket);
    socket.write(oldClient(false).subarray(preface.length + settings.length));
    assert.equal((await answer).status, 'answered');
    socket.destroy();
  });

  test(`${runtime}: HTTP/1 on the same socket, also when it comes in pieces`, async (t) => {
    const { server, path } = await serve(t, runtime);
    const asked = request({ socketPath: path, method: 'POST', path: '/VolumeDriver.List' });
    asked.end('{}');
    const [response] = await once(asked, 'response');
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'POST /VolumeDriver.List');
    for (const size of [1, 2, 5, 1000]) {
      const socket = connect(path);
      const bytes = Buffer.from('PUT /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok');
      for (let at = 0; at < bytes.length; at += size) {
        socket.write(bytes.subarray(at, at + size));
        await turn();
      }
      const answer = Buffer.concat(await socket.toArray()).toString();
      assert.match(answer, /^HTTP\/1.1 200 [\s\S]*PUT \/a/);
    }
    assert.deepEqual(server.crashes(), []);
  });

  test(`${runtime}: goodbyes, garbage and resets hurt nobody else`, async (t) => {
    const { server, path } = await serve(t, runtime);
    const garbage = [
      Buffer.concat([preface, goaway]),
      Buffer.concat([oldClient(true), goaway]),
      Buffer.concat([preface, settings, frame(1, 4, 1, Buffer.alloc(300, 0xff))]),
      Buffer.concat([preface, frame(0, 0, 1, Buffer.alloc(20_000))]),
      Buffer.concat([preface, settings, frame(3, 0, 9, Buffer.alloc(4))]),
      Buffer.concat([preface, Buffer.from('GET / HTTP/1.1\r\n\r\n')]),
      preface.subarray(0, 20),
      Buffer.from('GET / HTTP/9.9\r\n\r\n'),
      Buffer.alloc(4096, 0),
    ];
    const rude = async (bytes: Buffer, destroy: boolean) => {
      const socket = connect(path);
      socket.on('error', () => {});
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.resume();
      await new Promise((resolve) => socket.write(bytes, resolve));
      if (destroy) socket.destroy();
      else socket.end();
      await closed;
    };
    for (const bytes of garbage) await Promise.all([rude(bytes, true), rude(bytes, false)]);
    const piece = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.array(piece, { maxLength: 6 }),
        fc.boolean(),
        async (http2, pieces, destroy) => {
          const typed = pieces.map((bytes) => (http2 ? frame((bytes[0] ?? 0) % 10, bytes[1] ?? 0, 1, bytes) : bytes));
          await rude(Buffer.concat([...(http2 ? [preface, settings] : []), ...typed]), destroy);
        },
      ),
      { numRuns: 60, interruptAfterTimeLimit: 30_000, markInterruptAsFailure: true },
    );
    assert.deepEqual(await converse(path, [oldClient(true)]), { status: 'answered', data: echoed });
    server.stop();
    assert.deepEqual([await server.next(), await server.next()], [{ stopped: true }, { closed: true }]);
    assert.deepEqual(server.crashes(), []);
  });
}
