import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { CallContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { CallError, statusCodes } from '../../src/core/errors.ts';
import { createLogger } from '../../src/core/logger.ts';
import type { VolumeSpec } from '../../src/core/volume.ts';
import { createCsiFrontend } from '../../src/frontends/csi/frontend.ts';
import { CreateVolumeRequest } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { createMetrics } from '../../src/pipeline/metrics.ts';
import { createPipeline } from '../../src/pipeline/pipeline.ts';

type Volumes = NonNullable<Driver['volumes']>;

function driverWith(create: Volumes['create']): Driver {
  return {
    name: 'stand-in',
    constrained: false,
    volumes: {
      sources: new Set(['volume']),
      idFor: (spec) => spec.name,
      create,
      delete: async () => {},
      validate: async () => ({ confirmed: true }),
    },
    close: async () => {},
  };
}

/** A frontend on a real socket, a client for it, and what was logged. */
async function serve(t: TestContext, driver: Driver) {
  const folder = await mkdtemp(join(tmpdir(), 'frontend-'));
  const lines: string[] = [];
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) });
  const metrics = createMetrics('test.csi');
  const frontend = createCsiFrontend(driver, {
    pluginName: 'test.csi',
    version: '1.2.3',
    commit: 'abc',
    modes: new Set(['controller', 'node']),
    pipeline: createPipeline({ log, metrics }),
  });
  const listener = createServer((socket) => frontend.accept(socket));
  const path = join(folder, 'csi.sock');
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  const client = new Client(`unix://${path}`, credentials.createInsecure());
  t.after(async () => {
    client.close();
    listener.close();
    await frontend.stop(1000);
    await rm(folder, { recursive: true });
  });
  return { client, lines, metrics, frontend };
}

const { CreateVolume, GetCapacity, ListVolumes } = services.Controller;

const creation = {
  name: 'v1',
  capacityRange: { requiredBytes: 5 * 2 ** 30, limitBytes: 10 * 2 ** 30 },
  volumeCapabilities: [{ mount: {}, accessMode: { mode: 1 } }],
};

function call<Request, Response>(
  client: Client,
  method: { path: string; requestSerialize: (r: Request) => Buffer; responseDeserialize: (b: Buffer) => Response },
  request: Request,
  options: { deadline?: number; metadata?: Metadata } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      options.metadata ?? new Metadata(),
      options.deadline ? { deadline: options.deadline } : {},
      (error: ServiceError | null, response?: Response) => (error ? reject(error) : resolve(response as Response)),
    );
  });
}

test('a request reaches the driver in plain values, and the answer comes back', async (t) => {
  let seen: VolumeSpec | undefined;
  const driver = driverWith(async (_call, spec) => {
    seen = spec;
    return { id: 'v1', capacityBytes: 7, context: { a: 'b' }, topology: [{ 'x/node': 'n1' }] };
  });
  const { client } = await serve(t, driver);
  const answer = await call(client, CreateVolume, {
    ...creation,
    capacityRange: { requiredBytes: 0, limitBytes: 0 },
    accessibilityRequirements: { requisite: [], preferred: [] },
  });
  assert.equal(answer.volume?.volumeId, 'v1');
  assert.deepEqual(answer.volume?.accessibleTopology[0]?.segments, { 'x/node': 'n1' });
  assert.deepEqual(seen?.capacity, { requiredBytes: undefined, limitBytes: undefined });
  assert.deepEqual(seen?.topology, { requisite: [], preferred: [] });
  assert.deepEqual(seen?.capabilities, [
    { type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType: '', mountFlags: [], mountGroup: '' },
  ]);
});

const refused: [string, object, keyof typeof statusCodes, RegExp][] = [
  ['no name', { name: '' }, 'INVALID_ARGUMENT', /^\d+ INVALID_ARGUMENT: name is required/],
  ['no capabilities', { volumeCapabilities: [] }, 'INVALID_ARGUMENT', /volume_capabilities is required/],
  ['a long name', { name: 'x'.repeat(129) }, 'INVALID_ARGUMENT', /name has 129 bytes, 128 are allowed/],
  ['a large map', { parameters: { a: 'x'.repeat(5000) } }, 'INVALID_ARGUMENT', /parameters has 5001 bytes/],
  ['no access type', { volumeCapabilities: [{ accessMode: { mode: 1 } }] }, 'INVALID_ARGUMENT', /access_type/],
  ['an unknown mode', { volumeCapabilities: [{ mount: {}, accessMode: { mode: 99 } }] }, 'INVALID_ARGUMENT', /99/],
  ['a negative size', { capacityRange: { requiredBytes: -1 } }, 'OUT_OF_RANGE', /required_bytes/],
  ['a size over 2^53-1', { capacityRange: { requiredBytes: 2 ** 53 } }, 'OUT_OF_RANGE', /required_bytes/],
  [
    '10 GiB needed of 5',
    { capacityRange: { requiredBytes: 10 * 2 ** 30, limitBytes: 5 * 2 ** 30 } },
    'OUT_OF_RANGE',
    /more than/,
  ],
  ['an empty source', { volumeContentSource: { snapshot: { snapshotId: '' } } }, 'INVALID_ARGUMENT', /snapshot_id/],
];

for (const [what, change, code, message] of refused) {
  test(`CreateVolume with ${what} is ${code}`, async (t) => {
    const driver = driverWith(async () => assert.fail('the driver must not be asked'));
    const { client } = await serve(t, driver);
    await assert.rejects(call(client, CreateVolume, { ...creation, ...change }), { code: statusCodes[code], message });
  });
}

test('what the driver cannot do is UNIMPLEMENTED, and a negative page an error', async (t) => {
  const { client } = await serve(
    t,
    driverWith(async () => assert.fail()),
  );
  await assert.rejects(call(client, GetCapacity, {}), { code: statusCodes.UNIMPLEMENTED });
  await assert.rejects(call(client, ListVolumes, { maxEntries: -1 }), { code: statusCodes.UNIMPLEMENTED });
});

test('errors keep their code; anything unexpected is one line without a stack', async (t) => {
  const errors = [new CallError('ALREADY_EXISTS', 'it is there'), new TypeError('boom\n  at somewhere')];
  const { client } = await serve(
    t,
    driverWith(() => Promise.reject(errors.shift())),
  );
  await assert.rejects(call(client, CreateVolume, creation), {
    code: statusCodes.ALREADY_EXISTS,
    details: 'it is there',
  });
  await assert.rejects(call(client, CreateVolume, creation), {
    code: statusCodes.INTERNAL,
    details: 'boom at somewhere',
  });
});

test('secrets reach the driver and never the log', async (t) => {
  let secrets: CallContext['secrets'] = {};
  const driver = driverWith(async (context) => {
    secrets = context.secrets;
    return { id: 'v1', capacityBytes: 0, context: {} };
  });
  const { client, lines } = await serve(t, driver);
  await call(client, CreateVolume, {
    ...creation,
    secrets: { chap: 'hunter2' },
    parameters: { password: 'hunter2', mode: 'x', options: 'username=u,password=hunter2,vers=3' },
  });
  assert.deepEqual(secrets, { chap: 'hunter2' });
  const logged = lines.join('');
  assert.match(logged, /"method|"message":"CreateVolume"/);
  assert.match(logged, /"chap":"\*\*\*"/);
  assert.match(logged, /vers=3/);
  assert.doesNotMatch(logged, /hunter2/);
});

test("a caller's deadline and a caller's cancellation look different to the work", async (t) => {
  const reasons: string[] = [];
  const started = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let n = 0;
  const driver = driverWith((context) => {
    const turn = n++;
    started[turn]?.resolve();
    return new Promise((_resolve, reject) => {
      context.signal.addEventListener('abort', () => {
        reasons.push(context.signal.reason.code);
        reject(context.signal.reason);
        ended[turn]?.resolve();
      });
    });
  });
  const { client } = await serve(t, driver);
  await assert.rejects(call(client, CreateVolume, creation, { deadline: Date.now() + 200 }), {
    code: statusCodes.DEADLINE_EXCEEDED,
  });
  await ended[0]?.promise;
  const pending = client.makeUnaryRequest(
    CreateVolume.path,
    CreateVolume.requestSerialize,
    CreateVolume.responseDeserialize,
    creation,
    () => {},
  );
  await started[1]?.promise;
  pending.cancel();
  await ended[1]?.promise;
  assert.deepEqual(reasons, ['DEADLINE_EXCEEDED', 'CANCELLED']);
});

test("the caller's request id is in the log line, and the call in the metrics", async (t) => {
  const driver = driverWith(async (context) => {
    context.label('connection', 'nas');
    return { id: 'v1', capacityBytes: 0, context: {} };
  });
  const { client, lines, metrics } = await serve(t, driver);
  const metadata = new Metadata();
  metadata.set('x-request-id', 'req-42');
  await call(client, CreateVolume, creation, { metadata });
  const line = JSON.parse(lines.find((text) => text.includes('CreateVolume')) ?? '{}');
  assert.equal(line.requestId, 'req-42');
  assert.equal(line.connection, 'nas');
  assert.equal(line.code, 'OK');
  const text = await metrics.registry.metrics();
  assert.match(
    text,
    /csi_plugin_operations_seconds_count\{.*method_name="CreateVolume",grpc_status_code="OK",connection="nas".*\} 1/,
  );
  assert.match(text, /switchboard_calls_in_flight\{method_name="CreateVolume"\} 0/);
});

test('unknown enum values and fields in a request do not fail it', async (t) => {
  const driver = driverWith(async () => ({ id: 'v1', capacityBytes: 0, context: {} }));
  const { client } = await serve(t, driver);
  const bytes = Buffer.concat([
    CreateVolumeRequest.encode(creation).finish(),
    Buffer.from([0xfa, 0x7f, 0x03, 1, 2, 3]),
  ]);
  const raw = { ...CreateVolume, requestSerialize: (request: Buffer) => request };
  const answer = await call(client, raw, bytes);
  assert.equal(answer.volume?.volumeId, 'v1');
});
