import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { Client, credentials } from '@grpc/grpc-js';
import { type Runtime, runtimeNames, scratch, startServer } from './listener-support.ts';

function openssl(directory: string, ...args: string[]): void {
  execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
}

function makeAuthority(directory: string, name: string): void {
  openssl(directory, 'req', '-x509', ...newKey(name), '-out', `${name}.crt`, '-subj', `/CN=${name}`, '-days', '2');
}

async function makeCertificate(directory: string, name: string, authority: string): Promise<void> {
  openssl(directory, 'req', ...newKey(name), '-out', `${name}.csr`, '-subj', `/CN=${name}`);
  await writeFile(join(directory, 'extensions'), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
  const by = ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-extfile', 'extensions'];
  openssl(directory, 'x509', '-req', '-in', `${name}.csr`, ...by, '-out', `${name}.crt`, '-days', '2');
}

const newKey = (name: string) => [
  '-newkey',
  'ec',
  '-pkeyopt',
  'ec_paramgen_curve:P-256',
  '-nodes',
  '-keyout',
  `${name}.key`,
];

async function certificates(t: TestContext): Promise<string> {
  const directory = await scratch(t);
  for (const name of ['ca', 'other-ca']) makeAuthority(directory, name);
  for (const name of ['server', 'server2', 'client']) await makeCertificate(directory, name, 'ca');
  await makeCertificate(directory, 'stranger', 'other-ca');
  return directory;
}

async function serve(t: TestContext, runtime: Runtime, directory: string) {
  const tls = {
    cert: join(directory, 'server.crt'),
    key: join(directory, 'server.key'),
    clientCa: join(directory, 'ca.crt'),
  };
  const server = await startServer(t, runtime, { endpoints: ['0.0.0.0:0'], tls });
  const port = Number(/:(\d+)$/.exec(server.addresses[0] ?? '')?.[1]);
  assert.ok(port, server.first.error ?? server.log());
  return { server, port };
}

interface Outcome {
  readonly answer: string;
  readonly servedBy: string | undefined;
}

/** Asks by HTTP/1 over TLS as this client, and tells what came. */
async function ask(
  directory: string,
  port: number,
  client: string | undefined,
  more: ConnectionOptions = {},
): Promise<Outcome> {
  const read = (name: string) => readFile(join(directory, name));
  const identity = client === undefined ? {} : { cert: await read(`${client}.crt`), key: await read(`${client}.key`) };
  const socket: TLSSocket = connect({
    host: '127.0.0.1',
    port,
    servername: 'localhost',
    ca: await read('ca.crt'),
    ...identity,
    ...more,
  });
  let answer = '';
  let servedBy: string | undefined;
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('error', () => {});
  socket.once('secureConnect', () => {
    servedBy = String(socket.getPeerCertificate().subject.CN);
    socket.write('GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return { answer, servedBy };
}

for (const runtime of runtimeNames) {
  test(`${runtime}: TLS lets in whom the client CA signed, over HTTP/2 and HTTP/1, and nobody else`, async (t) => {
    const directory = await certificates(t);
    const { server, port } = await serve(t, runtime, directory);
    for (const ALPNProtocols of [undefined, ['http/1.1']]) {
      const good = await ask(directory, port, 'client', ALPNProtocols && { ALPNProtocols });
      assert.match(good.answer, /^HTTP\/1.1 200 [\s\S]*GET \/x/);
    }
    for (const [client, more] of [
      [undefined, {}],
      ['stranger', {}],
      ['client', { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }],
      ['client', { ALPNProtocols: ['smtp'] }],
    ] as const) {
      const { answer } = await ask(directory, port, client, more as ConnectionOptions);
      assert.equal(answer, '', `${client} ${JSON.stringify(more)}`);
    }
    const plain = connectTcp(port, '127.0.0.1').on('error', () => {});
    plain.end('GET / HTTP/1.1\r\n\r\n').resume();
    await once(plain, 'close');
    const left = connectTcp(port, '127.0.0.1');
    await once(left, 'connect');
    left.destroy();

    const [ca, key, cert] = await Promise.all(
      ['ca.crt', 'client.key', 'client.crt'].map((n) => readFile(join(directory, n))),
    );
    const client = new Client(`localhost:${port}`, credentials.createSsl(ca!, key!, cert!));
    t.after(() => client.close());
    for (const body of [Buffer.from('hello'), Buffer.alloc(1 << 20, 3)]) {
      const answer = await new Promise<Buffer | undefined>((resolve, reject) => {
        const same = (bytes: Buffer) => bytes;
        const options = { deadline: Date.now() + 20_000 };
        client.makeUnaryRequest('/test.Test/Echo', same, same, body, options, (e, value) =>
          e ? reject(e) : resolve(value),
        );
      });
      assert.ok(answer?.equals(body));
    }
    server.stop();
    assert.deepEqual([await server.next(), await server.next()], [{ stopped: true }, { closed: true }]);
    assert.deepEqual(server.crashes(), []);
  });

  test(`${runtime}: changed certificate files hold for the next connection, broken ones do not`, async (t) => {
    const directory = await certificates(t);
    const { server, port } = await serve(t, runtime, directory);
    const put = async (name: string, suffixes: readonly string[]) => {
      for (const suffix of suffixes)
        await copyFile(join(directory, `${name}.${suffix}`), join(directory, `server.${suffix}`));
    };
    assert.equal((await ask(directory, port, 'client')).servedBy, 'server');
    await put('server2', ['crt']);
    assert.equal((await ask(directory, port, 'client')).servedBy, 'server');
    assert.match(server.log(), /"warn".*the earlier ones stay: the key .* does not belong to the certificate/);
    await put('server2', ['key']);
    assert.equal((await ask(directory, port, 'client')).servedBy, 'server2');
    await writeFile(join(directory, 'server.key'), 'garbage');
    assert.equal((await ask(directory, port, 'client')).servedBy, 'server2');
    await put('server2', ['key']);
    await copyFile(join(directory, 'other-ca.crt'), join(directory, 'ca.crt'));
    const ca = { ca: undefined, rejectUnauthorized: false };
    assert.match((await ask(directory, port, 'stranger', ca as ConnectionOptions)).answer, /200/);
    assert.equal((await ask(directory, port, 'client', ca as ConnectionOptions)).answer, '');
    assert.ok(!server.log().includes('PRIVATE KEY'));
    assert.deepEqual(server.crashes(), []);
  });

  test(`${runtime}: files that cannot be used are named at start`, async (t) => {
    const directory = await certificates(t);
    await writeFile(join(directory, 'garbage'), 'garbage');
    const files = { cert: 'server.crt', key: 'server.key', clientCa: 'ca.crt' };
    for (const [wrong, expected] of [
      [{ cert: 'missing' }, /--server-tls-cert .*missing: ENOENT/],
      [{ key: 'garbage' }, /--server-tls-key .*garbage: /],
      [{ clientCa: 'garbage' }, /--server-tls-client-ca .*garbage: /],
      [{ key: 'client.key' }, /the key .*client.key does not belong to the certificate .*server.crt/],
    ] as const) {
      const { cert, key, clientCa } = { ...files, ...wrong };
      const tls = { cert: join(directory, cert), key: join(directory, key), clientCa: join(directory, clientCa) };
      const { first } = await startServer(t, runtime, { endpoints: ['127.0.0.1:0'], tls });
      assert.match(first.error ?? '', expected);
    }
  });
}
