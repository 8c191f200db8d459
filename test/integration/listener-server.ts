/** A program for the listener's tests: a gRPC service and an HTTP/1 server behind one listener, in Node.js or Deno, told what to do by an argument. */
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { createLogger } from '../../src/core/logger.ts';
import { parseEndpoint } from '../../src/frontends/listener/endpoints.ts';
import { listen } from '../../src/frontends/listener/listen.ts';
import type { TlsFiles } from '../../src/frontends/listener/tls-files.ts';

export interface ServerOrder {
  readonly endpoints: readonly string[];
  readonly socketMode?: number;
  readonly tls?: TlsFiles;
  readonly allowInsecureTcp?: boolean;
}

const order = JSON.parse(process.argv[2] ?? '') as ServerOrder;
const say = (fact: object) => process.stdout.write(`${JSON.stringify(fact)}\n`);
const log = createLogger({ level: 'debug', format: 'json', write: (line) => process.stderr.write(line) });
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error) => say({ crash: String(error instanceof Error ? error.stack : error) }));
}

const same = (bytes: Buffer) => bytes;
const method = { requestStream: false, responseStream: false, requestSerialize: same, responseSerialize: same };
const unary = { ...method, requestDeserialize: same, responseDeserialize: same };
const grpc = new Server({ 'grpc.max_receive_message_length': 8 << 20 });
grpc.addService(
  { echo: { ...unary, path: '/test.Test/Echo' }, fail: { ...unary, path: '/test.Test/Fail' } },
  {
    echo: (call: { request: Buffer }, respond: (error: null, answer: Buffer) => void) => respond(null, call.request),
    fail: (_call: unknown, respond: (error: object) => void) => respond({ code: status.ABORTED, details: 'as asked' }),
  },
);
const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
const http = createServer((request, response) => {
  request.resume().on('end', () => response.end(`${request.method} ${request.url}`));
});

try {
  const listener = await listen({
    ...order,
    endpoints: order.endpoints.map(parseEndpoint),
    log,
    onHttp2: (stream) => injector.injectConnection(stream),
    onHttp1: (socket) => http.emit('connection', socket as Socket),
  });
  const descriptors = spawnSync('ls', ['-l', '/proc/self/fd'], { encoding: 'utf8' }).stdout;
  const variables = Object.keys(process.env).filter((name) => name.startsWith('LISTEN_'));
  say({ addresses: listener.addresses, variables, childHasSocket: / (?:[3-9]|\d\d+) -> socket:/.test(descriptors) });
  // The test is gone.
  process.stdin.on('end', () => process.exit());
  process.stdin.on('data', async () => {
    await listener.stopAccepting();
    say({ stopped: true });
    grpc.forceShutdown();
    await listener.close();
    say({ closed: true });
    process.exit();
  });
} catch (error) {
  say({ error: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}
