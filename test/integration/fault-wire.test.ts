/** Clients that do not speak the protocol, or stop in the middle of it: nobody else notices, and nothing of them stays. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { errnoOf } from '../../src/core/errors.ts';
import { services } from '../../src/generated/services.js';
import { frame, goaway, literal, preface, requestHeaders, settings, text } from '../unit/listener-http2.ts';
import { createVolume, deleteVolume, outcomeOf, volumeRequest } from './csi-calls.ts';
import {
  assertAtRest,
  assertLeavesNothing,
  eventually,
  makeSite,
  openFiles,
  type Server,
  type Site,
} from './server-under-test.ts';

const { Controller, Identity, Node } = services;

interface Baseline {
  readonly files: number;
  readonly kib: number;
}

async function warmSite(t: TestContext): Promise<{ site: Site; server: Server; start: Baseline }> {
  const site = await makeSite(t);
  const server = await site.start();
  await createVolume(server, 'first').then((id) => deleteVolume(server, id));
  return { site, server, start: { files: await openFiles(server), kib: await residentKib(server) } };
}

async function residentKib({ pid }: Server): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** What a fault may cost for good: nothing but some memory that the runtime keeps for the next time. */
async function assertUnharmed(site: Site, server: Server, start: Baseline): Promise<void> {
  await createVolume(server, 'after').then((id) => deleteVolume(server, id));
  await assertAtRest(site, server);
  await eventually(async () => assert.ok((await openFiles(server)) <= start.files, 'file descriptors are left open'));
  const grown = (await residentKib(server)) - start.kib;
  assert.ok(grown < 100 * 1024, `${grown} KiB more memory`);
}

/** A connection whose errors are nobody's. A queue of connections that is full is waited for. */
async function dial(path: string): Promise<Socket> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return socket.on('error', () => {});
  } catch (error) {
    if (errnoOf(error) !== 'EAGAIN') throw error;
    await turn();
    return dial(path);
  }
}

/** Sends the pieces, then closes or just goes; resolves when the connection is over. */
async function rude(socket: string, pieces: readonly Buffer[], destroy: boolean): Promise<void> {
  const connection = await dial(socket);
  const closed = new Promise((resolve) => connection.once('close', resolve));
  connection.resume();
  for (const piece of pieces) await new Promise((resolve) => connection.write(piece, resolve));
  if (destroy) connection.destroy();
  else connection.end();
  await closed;
}

function session(site: Site): ClientHttp2Session {
  const made = connectHttp2('http://localhost', { createConnection: () => connect(site.socket) });
  made.on('error', () => {});
  return made;
}

/** The code of a gRPC answer; undefined when the stream ended without. */
async function statusOf(client: ClientHttp2Session, path: string, body: Buffer, headers: OutgoingHttpHeaders = {}) {
  const stream = client.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  let status: unknown;
  stream.on('error', () => {});
  stream.on('response', (answer) => {
    status ??= answer['grpc-status'];
  });
  stream.on('trailers', (trailers) => {
    status ??= trailers['grpc-status'];
  });
  const closed = new Promise((resolve) => stream.once('close', resolve));
  stream.resume();
  stream.end(body);
  await closed;
  return status === undefined ? undefined : Number(status);
}

/** A message with its gRPC prefix, which may lie about the length. */
function enveloped(message: Buffer, length = message.length, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

const methods = [Identity, Controller, Node].flatMap((service) => Object.values(service).map(({ path }) => path));
const ok = 0;

test('garbage in place of a message, in every call', async (t) => {
  const { site, server, start } = await warmSite(t);
  const client = session(site);
  const broken = [
    [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], // a string of 4 GiB
    [0x0a, 0x05, 0x61], // a string that ends too early
    [0x80], // a number that ends too early
    [0x0b], // a group that never ends
    [0x07], // no wire type
    [0x00], // field 0
    Array(11).fill(0xff), // a number of 11 bytes
  ].map((bytes) => Buffer.from(bytes));
  for (const path of methods) {
    for (const bytes of broken) {
      const status = await statusOf(client, path, enveloped(bytes));
      assert.ok(status !== undefined && status !== ok, `${path} ${bytes.toString('hex')}: ${status}`);
    }
  }
  const deep = (levels: number): Buffer => {
    let bytes = Buffer.alloc(0);
    for (let level = 0; level < levels; level++) bytes = Buffer.concat([varint(0x0a), varint(bytes.length), bytes]);
    return bytes;
  };
  for (const path of methods) assert.notEqual(await statusOf(client, path, enveloped(deep(2000))), undefined, path);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...methods), fc.uint8Array({ maxLength: 60 }), async (path, bytes) => {
      assert.notEqual(await statusOf(client, path, enveloped(Buffer.from(bytes))), undefined);
    }),
    { numRuns: 200 },
  );
  client.destroy();
  await assertUnharmed(site, server, start);
  await assertLeavesNothing(site, server);
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

test('frames that lie about their length, messages that are too large, calls that are none', async (t) => {
  const { site, server, start } = await warmSite(t);
  const client = session(site);
  const { path } = Controller.CreateVolume;
  const good = Controller.CreateVolume.requestSerialize(volumeRequest('wire'));
  const cases: Readonly<Record<string, () => Promise<number | undefined>>> = {
    'longer than announced': () => statusOf(client, path, enveloped(good, good.length - 3)),
    'shorter than announced': () => statusOf(client, path, enveloped(good, good.length + 3)),
    'announced with 4 GiB': () => statusOf(client, path, enveloped(good, 0xffff_ffff)),
    'two messages': () => statusOf(client, path, Buffer.concat([enveloped(good), enveloped(good)])),
    'no message': () => statusOf(client, path, Buffer.alloc(0)),
    'half a prefix': () => statusOf(client, path, Buffer.alloc(3)),
    'compressed in an unknown way': () =>
      statusOf(client, path, enveloped(good, good.length, 1), { 'grpc-encoding': 'secret' }),
    'gzip that is none': () => statusOf(client, path, enveloped(good, good.length, 1), { 'grpc-encoding': 'gzip' }),
    'an unknown method': () => statusOf(client, '/csi.v1.Controller/Nothing', enveloped(good)),
    'an unknown service': () => statusOf(client, '/../../etc/passwd', enveloped(good)),
    'a strange deadline': () =>
      statusOf(client, path, enveloped(Buffer.from([0x80])), { 'grpc-timeout': '99999999999x' }),
  };
  for (const [what, ask] of Object.entries(cases)) {
    const status = await ask();
    assert.ok(status !== undefined && status !== ok, `${what}: ${status}`);
  }
  for (const headers of [
    { ':method': 'GET' },
    { 'content-type': 'text/html' },
    { 'content-type': 'application/json' },
  ]) {
    assert.notEqual(await statusOf(client, path, enveloped(good), headers), ok);
  }
  for (const mib of [4.1, 5, 64]) {
    const { code: refused } = await outcomeOf(createVolume(server, 'a'.repeat(mib * 2 ** 20)));
    assert.equal(refused, 'RESOURCE_EXHAUSTED', `${mib} MiB`);
  }
  client.destroy();
  assert.deepEqual((await server.call(Controller.ListVolumes, {})).entries, []);
  await assertUnharmed(site, server, start);
  await assertLeavesNothing(site, server);
});

test('bytes that are no HTTP/2, and HTTP/2 that nobody should send', async (t) => {
  const { site, server, start } = await warmSite(t);
  const { path } = Identity.Probe;
  const headers = requestHeaders(literal(1, text('localhost')), path);
  const call = frame(1, 4, 1, headers);
  const garbage: readonly (readonly Buffer[])[] = [
    [Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    [Buffer.from('POST /VolumeDriver.Create HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{')],
    [Buffer.from('GET / HTTP/9.9\r\n\r\n')],
    [Buffer.from([22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3])], // TLS
    [Buffer.alloc(100_000, 0)],
    [Buffer.alloc(100_000, 0xff)],
    [preface.subarray(0, 5)],
    [preface.subarray(0, 14)],
    [preface.subarray(0, 20)],
    [preface],
    [Buffer.concat([preface, goaway])],
    [Buffer.concat([preface, settings, Buffer.from('GET / HTTP/1.1\r\n\r\n')])],
    [preface, settings, call.subarray(0, 12)],
    [preface, settings, call],
    [preface, settings, call, frame(3, 0, 1, Buffer.alloc(4))],
    [preface, settings, frame(1, 0, 1, headers)], // a header block that never ends
    [preface, settings, frame(1, 0, 1, headers), ...Array(64).fill(frame(9, 0, 1, Buffer.alloc(16_000)))],
    [preface, settings, frame(1, 4, 1, Buffer.alloc(300, 0xff))],
    [preface, settings, frame(1, 4, 2, headers)], // a stream of the server's
    [preface, settings, frame(0, 0, 1, Buffer.alloc(16_384))], // data of no stream
    [preface, settings, frame(0, 0, 1, Buffer.alloc(20_000))],
    [preface, settings, frame(4, 0, 0, Buffer.alloc(5))],
    [preface, settings, frame(8, 0, 0, Buffer.alloc(4))],
    [preface, settings, frame(6, 0, 0, Buffer.alloc(3))],
  ];
  for (const pieces of garbage) await Promise.all([rude(site.socket, pieces, true), rude(site.socket, pieces, false)]);
  // Floods whose answers nobody reads: the connection may break while the server still writes.
  const floods = [Array(2000).fill(frame(6, 0, 0, Buffer.alloc(8))), Array(2000).fill(settings)];
  for (let round = 0; round < 30; round++) {
    for (const flood of floods) await rude(site.socket, [preface, settings, ...flood], true);
  }
  const resets = Array.from({ length: 3000 }, (_, n) => [
    frame(1, 4, 2 * n + 1, headers),
    frame(3, 0, 2 * n + 1, Buffer.alloc(4)),
  ]);
  await rude(site.socket, [preface, settings, Buffer.concat(resets.flat())], false);
  await assertUnharmed(site, server, start);
  await assertLeavesNothing(site, server);
});

test('500 connections that are opened and abandoned, and 500 that stay', async (t) => {
  const { site, server, start } = await warmSite(t);
  const begin = [[], [preface.subarray(0, 10)], [preface], [preface, settings]];
  await Promise.all(Array.from({ length: 500 }, (_, n) => rude(site.socket, begin[n % begin.length] ?? [], true)));
  const staying: Socket[] = [];
  for (let n = 0; n < 500; n++) {
    const socket = await dial(site.socket);
    for (const piece of begin[n % begin.length] ?? []) socket.write(piece);
    staying.push(socket);
  }
  await createVolume(server, 'meanwhile').then((id) => deleteVolume(server, id));
  for (const socket of staying) socket.destroy();
  await assertUnharmed(site, server, start);
  await assertLeavesNothing(site, server);
});

test('more clients than there are file descriptors: who is in is answered, and everybody when they are gone', async (t) => {
  const site = await makeSite(t);
  const server = await site.start({ under: ['sh', '-c', 'ulimit -n 100; exec "$@"', 'sh'] });
  await createVolume(server, 'source');
  const files = await openFiles(server);
  const staying = await Promise.all(Array.from({ length: 200 }, () => dial(site.socket)));
  for (const socket of staying) socket.write(Buffer.concat([preface, settings]));
  await eventually(async () => assert.ok((await openFiles(server)) >= 100));
  for (let round = 0; round < 20; round++) {
    const outcomes = await Promise.all([
      outcomeOf(createVolume(server, 'empty')),
      outcomeOf(createVolume(server, 'copy', { fromVolume: 'v:local/source' })),
      outcomeOf(server.call(Controller.ListVolumes, {})),
    ]);
    for (const { code, message } of outcomes)
      assert.match(code, /^(OK|RESOURCE_EXHAUSTED|ABORTED)$/, `${code}: ${message}`);
  }
  for (const socket of staying) socket.destroy();
  await eventually(async () => assert.ok((await openFiles(server)) <= files));
  for (const name of ['empty', 'copy']) await createVolume(server, name);
  for (const name of ['empty', 'copy', 'source']) await deleteVolume(server, `v:local/${name}`);
  await assertLeavesNothing(site, server);
});

test('clients that disappear in the middle of their calls', async (t) => {
  const { site, server, start } = await warmSite(t);
  for (let round = 0; round < 20; round++) {
    const client = session(site);
    const create = (n: number) => Controller.CreateVolume.requestSerialize(volumeRequest(`gone-${round}-${n}`));
    const calls = Array.from({ length: 20 }, (_, n) =>
      statusOf(client, Controller.CreateVolume.path, enveloped(create(n))),
    );
    if (round % 2 === 0) await once(client, 'connect');
    else await calls[0];
    client.destroy();
    await Promise.all(calls);
  }
  await assertAtRest(site, server);
  const { entries } = await server.call(Controller.ListVolumes, {});
  for (const { volume } of entries) await deleteVolume(server, volume?.volumeId ?? '');
  await assertUnharmed(site, server, start);
  await assertLeavesNothing(site, server);
});
