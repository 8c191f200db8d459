import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type Duplex, duplexPair, PassThrough } from 'node:stream';
import { mock, test } from 'node:test';
import fc from 'fast-check';
import { filteredStream } from '../../src/frontends/listener/filtered-stream.ts';
import { createFrameFilter } from '../../src/frontends/listener/frames.ts';
import { sniff } from '../../src/frontends/listener/sniff.ts';
import { createWaitingRoom } from '../../src/frontends/listener/waiting-room.ts';
import { frame, preface, settings } from './listener-http2.ts';

/** A stream that hands out exactly these chunks, one a turn. */
async function feed(stream: PassThrough, chunks: readonly Buffer[]): Promise<void> {
  for (const chunk of chunks) {
    stream.write(chunk);
    await new Promise(setImmediate);
  }
}

async function sniffed(chunks: readonly Buffer[]): Promise<string> {
  const stream = new PassThrough();
  let answer = 'nothing';
  sniff(stream, {
    http2: (head) => {
      answer = `http2 ${head.toString('latin1')}`;
    },
    http1: () => {
      answer = 'http1';
    },
  });
  await feed(stream, chunks);
  assert.equal(stream.listenerCount('data'), 0 + Number(answer === 'nothing'));
  if (answer === 'http1') answer += ` ${(stream.read() as Buffer).toString('latin1')}`;
  stream.destroy();
  return answer;
}

test('the preface is HTTP/2, however it arrives', async () => {
  assert.equal(await sniffed([preface]), `http2 ${preface}`);
  assert.equal(await sniffed([...preface.subarray(0, 14)].map((byte) => Buffer.from([byte]))), 'http2 PRI * HTTP/2.0');
  assert.equal(await sniffed([preface.subarray(0, 13)]), 'nothing');
});

test('everything else is HTTP/1, and what was read is still there', async () => {
  for (const text of ['GET / HTTP/1.1\r\n', 'POST /', 'PRI * HTTP/1.1', '\0\xff']) {
    const bytes = Buffer.from(text, 'latin1');
    assert.equal(await sniffed([bytes]), `http1 ${text}`);
  }
  assert.equal(await sniffed([Buffer.from('PRI'), Buffer.from(' /x')]), 'http1 PRI /x');
});

test('a client that says goodbye first is forgotten', async () => {
  const stream = new PassThrough();
  sniff(stream, { http2: () => assert.fail(), http1: () => assert.fail() });
  stream.end('PRI');
  await once(stream, 'close');
  assert.ok(stream.destroyed);
});

test('waiting is limited in time and in number', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const gone: string[] = [];
    const guest = (name: string) => ({ destroy: () => gone.push(name) });
    const room = createWaitingRoom({ limitMs: 10, places: 2 });
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(guest);
    room.enter(a!);
    room.enter(b!);
    room.enter(c!);
    assert.deepEqual(gone, ['a']);
    room.leave(b!);
    mock.timers.tick(10);
    assert.deepEqual(gone, ['a', 'c']);
    room.enter(d!);
    room.clear();
    mock.timers.tick(10);
    assert.deepEqual(gone, ['a', 'c', 'd']);
  } finally {
    mock.timers.reset();
  }
});

function connection(head = preface): { client: Duplex; stream: Duplex; refusals: string[]; socket: Duplex } {
  const [client, socket] = duplexPair();
  const refusals: string[] = [];
  const stream = filteredStream(socket, {
    head,
    filter: createFrameFilter({ dropGoaway: false }),
    onRefusal: ({ message }) => void refusals.push(message),
  });
  client.on('error', () => {});
  return { client, stream, refusals, socket };
}

/** Reads this many bytes. */
async function take(stream: Duplex, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let taken = 0;
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    taken += chunk.length;
  });
  while (taken < bytes) await new Promise(setImmediate);
  return Buffer.concat(chunks);
}

test('bytes go both ways, in order and whole', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 16_384 }), { maxLength: 8 }), async (sizes) => {
      const { client, stream } = connection();
      const frames = Buffer.concat(sizes.map((size, i) => frame(0, 0, 1, Buffer.alloc(size, i + 1))));
      const back = Buffer.concat(sizes.map((size) => Buffer.alloc(size, size)));
      client.write(frames);
      stream.cork();
      for (const size of sizes) stream.write(Buffer.alloc(size, size));
      stream.uncork();
      const [up, down] = await Promise.all([take(stream, frames.length + 24), take(client, back.length)]);
      assert.deepEqual(up, Buffer.concat([preface, frames]));
      assert.deepEqual(down, back);
      client.end();
      await once(stream, 'close');
    }),
    { numRuns: 50 },
  );
});

test('what a client sent before it left is read to the end', async () => {
  const { client, stream } = connection();
  client.end(frame(0, 0, 1, Buffer.alloc(10_000)));
  await new Promise(setImmediate);
  assert.equal(Buffer.concat(await stream.toArray()).length, 24 + 9 + 10_000);
});

test('a client that is slow to read holds the writer back', async () => {
  const { client, stream } = connection();
  let written = false;
  stream.write(Buffer.alloc(1 << 20), () => {
    written = true;
  });
  await new Promise(setImmediate);
  assert.equal(written, false);
  client.resume();
  while (!written) await new Promise(setImmediate);
});

test('a server that is slow to read holds the client back', async () => {
  const { client, stream } = connection();
  let sent = 0;
  const chunk = frame(0, 0, 1, Buffer.alloc(16_384));
  while (client.write(chunk) && sent < 1000) {
    sent++;
    await new Promise(setImmediate);
  }
  assert.ok(sent < 100, `${sent} chunks were taken without a reader`);
  stream.resume();
  await once(client, 'drain');
});

test('a client that breaks the framing is cut off, and nothing else happens', async () => {
  const { client, stream, refusals, socket } = connection();
  stream.resume();
  client.write(frame(0, 0, 1, Buffer.alloc(20_000)));
  await once(stream, 'close');
  assert.deepEqual(refusals, ['a frame of 20000 bytes, where 16384 are allowed']);
  assert.ok(socket.destroyed);
});

test('a failing socket destroys the stream without an error event of its own', async () => {
  const { stream, socket } = connection(Buffer.concat([preface, settings]));
  socket.on('error', () => {});
  socket.destroy(new Error('reset'));
  await once(stream, 'close');
  assert.ok(stream.destroyed);
});
