import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MethodDefinition } from '@grpc/grpc-js';
import fc from 'fast-check';
import {
  CapacityRange,
  type Codec,
  CreateVolumeRequest,
  GetCapacityResponse,
  type Init,
  ListVolumesResponse,
  ProbeRequest,
  ProbeResponse,
  Snapshot,
  Topology,
  VolumeCapability,
  VolumeUsage,
} from '../../src/generated/csi.js';
import { secretFields } from '../../src/generated/secrets.js';
import { type RequestOf, type ResponseOf, services } from '../../src/generated/services.js';

const { Mode } = VolumeCapability.AccessMode;

/** Wire bytes as hexadecimal text, spaces allowed. */
const wire = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const encoded = <T>(codec: Codec<T>, message: Init<T>) => Buffer.from(codec.encode(message).finish()).toString('hex');

/** Protocol buffers encoding written down apart from the library: the base-128 varint of a 64-bit integer. */
function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
}

test('a request made by hand decodes, with defaults for all that was not sent', () => {
  const request = CreateVolumeRequest.decode(
    wire(
      '0a 02 7631' + // name: v1
        '12 06 08 8080808004' + // capacity_range.required_bytes: 2^30
        '1a 0e 12 08 0a 03 786673 12 01 72 1a 02 08 05' + // mount, xfs, flag r, MULTI_NODE_MULTI_WRITER
        '22 06 0a 01 61 12 01 62' + // parameters: a → b
        '22 03 0a 01 63' + // parameters: c → (nothing)
        '2a 06 0a 01 70 12 01 77' + // secrets: p → w
        '32 06 0a 04 0a 02 7331', // volume_content_source.snapshot: s1
    ),
  );
  assert.equal(request.name, 'v1');
  assert.equal(request.capacityRange?.requiredBytes, 2 ** 30);
  assert.equal(request.capacityRange?.limitBytes, 0);
  assert.equal(request.volumeCapabilities.length, 1);
  const [capability] = request.volumeCapabilities;
  assert.equal(capability?.accessType, 'mount');
  assert.equal(capability?.block, undefined);
  assert.equal(capability?.mount?.fsType, 'xfs');
  assert.deepEqual(capability?.mount?.mountFlags, ['r']);
  assert.equal(capability?.mount?.volumeMountGroup, '');
  assert.equal(capability?.accessMode?.mode, Mode.MULTI_NODE_MULTI_WRITER);
  assert.deepEqual({ ...request.parameters }, { a: 'b', c: '' });
  assert.deepEqual({ ...request.secrets }, { p: 'w' });
  assert.equal(request.volumeContentSource?.type, 'snapshot');
  assert.equal(request.volumeContentSource?.snapshot?.snapshotId, 's1');
  assert.equal(request.accessibilityRequirements, undefined);
  assert.deepEqual({ ...request.mutableParameters }, {});
});

test('an answer encodes to the bytes written by hand', () => {
  assert.equal(encoded(ProbeResponse, { ready: { value: true } }), '0a020801');
  assert.equal(encoded(ProbeResponse, { ready: { value: false } }), '0a00');
  assert.equal(encoded(ProbeResponse, { ready: undefined }), '');
  assert.equal(encoded(VolumeUsage, { total: 300, unit: VolumeUsage.Unit.INODES }), '10ac022002');
  const snapshot = { sizeBytes: 1, snapshotId: 's', creationTime: { seconds: 1, nanos: 2 }, readyToUse: true };
  assert.equal(encoded(Snapshot, snapshot), `0801${'120173'}${'220408011002'}${'2801'}`);
  assert.equal(encoded(GetCapacityResponse, { availableCapacity: 5, maximumVolumeSize: { value: 6 } }), '080512020806');
});

test('absent and empty differ for messages and wrappers, and only there', () => {
  assert.equal(ProbeResponse.decode(wire('')).ready, undefined);
  assert.equal(ProbeResponse.decode(wire('0a00')).ready?.value, false);
  assert.equal(GetCapacityResponse.decode(wire('1200')).maximumVolumeSize?.value, 0);
  assert.equal(GetCapacityResponse.decode(wire('')).maximumVolumeSize, undefined);
  assert.equal(VolumeCapability.decode(wire('0a00')).accessType, 'block');
  assert.equal(VolumeCapability.decode(wire('')).accessType, undefined);
});

test('every 64-bit integer arrives as a number, and one beyond 2^53-1 is told by Number.isSafeInteger', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const { requiredBytes } = CapacityRange.decode(Uint8Array.of(8, ...varint(value)));
      const safe = BigInt.asIntN(54, value) === value && value !== -(2n ** 53n);
      assert.equal(typeof requiredBytes, 'number');
      assert.equal(Number.isSafeInteger(requiredBytes), safe, `${value}`);
      if (safe) assert.equal(requiredBytes, Number(value));
    }),
    { numRuns: 300, examples: [[2n ** 53n - 1n], [2n ** 53n], [2n ** 53n + 1n], [-(2n ** 53n)], [2n ** 63n - 1n]] },
  );
});

test('sizes up to 2^53-1 encode exactly', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (size) => {
      assert.equal(
        encoded(CapacityRange, { limitBytes: size }),
        Buffer.from([16, ...varint(BigInt(size))]).toString('hex'),
      );
    }),
    { numRuns: 300, examples: [[Number.MAX_SAFE_INTEGER]] },
  );
});

test('unknown enum values and unknown fields of every wire type survive', () => {
  const future = '1a 02 08 63'; // access_mode.mode: 99
  const capability = VolumeCapability.decode(wire(future));
  assert.equal(capability.accessMode?.mode, 99);
  assert.equal(Mode[99], undefined);
  assert.equal(encoded(VolumeCapability, capability), future.replaceAll(' ', ''));

  const unknown = '9806 05 a106 0102030405060708 aa06 02 6869 b306 0801 b406 bd06 01020304';
  const topology = Topology.decode(wire(`0a060a017a120161${unknown}`));
  assert.deepEqual({ ...topology.segments }, { z: 'a' });
  assert.ok(encoded(Topology, topology).endsWith(unknown.replaceAll(' ', '')));
  assert.doesNotMatch(JSON.stringify(topology), /unknowns/);
});

test('bytes that are not a message are refused, and never anything worse', () => {
  for (const broken of ['0a', '0a05 61', '0aff', '12 0a 08 01', '0a02 c328', 'ffffffffffffffffffffff', '0c', '00']) {
    assert.throws(() => CreateVolumeRequest.decode(wire(broken)), Error, broken);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        CreateVolumeRequest.decode(bytes);
      } catch (error) {
        assert.ok(error instanceof Error);
      }
    }),
    { numRuns: 300 },
  );
});

test('a map key cannot reach the prototypes', () => {
  const { parameters } = CreateVolumeRequest.decode(wire('22 0e 0a 09 5f5f70726f746f5f5f 12 01 78'));
  assert.deepEqual(Object.entries(parameters), [['__proto__', 'x']]);
  assert.equal(Object.getPrototypeOf(parameters), Object.prototype);
  assert.equal(encoded(Topology, { segments: parameters }), '0a0e0a095f5f70726f746f5f5f120178');
});

test('any list of volumes comes back as it was', () => {
  const text = fc.string({ unit: 'binary' });
  const strings = fc.dictionary(text, text, { maxKeys: 4 });
  const size = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
  const volume = fc.record({
    capacityBytes: size,
    volumeId: text.filter((id) => id !== ''),
    volumeContext: strings,
    contentSource: fc.record({ snapshot: fc.record({ snapshotId: text.filter((id) => id !== '') }) }),
    accessibleTopology: fc.array(fc.record({ segments: strings }), { maxLength: 3 }),
  });
  const condition = fc.record({ abnormal: fc.constant(true), message: text.filter((message) => message !== '') });
  const status = fc.record({ publishedNodeIds: fc.array(text, { maxLength: 3 }), volumeCondition: condition });
  const list = fc.record({ entries: fc.array(fc.record({ volume, status }), { maxLength: 4 }) });
  fc.assert(
    fc.property(list, (message) => {
      const decoded = ListVolumesResponse.decode(ListVolumesResponse.encode(message).finish());
      assert.deepEqual(JSON.parse(JSON.stringify(decoded)), JSON.parse(JSON.stringify(message)));
    }),
    { numRuns: 200 },
  );
});

test('the service table has every service and method with its path', () => {
  const counts = Object.entries(services).map(([name, methods]) => [name, Object.keys(methods).length]);
  assert.deepEqual(Object.fromEntries(counts), {
    Identity: 3,
    Controller: 15,
    GroupController: 4,
    SnapshotMetadata: 2,
    Node: 8,
  });
  assert.equal(services.Controller.CreateVolume.path, '/csi.v1.Controller/CreateVolume');
  assert.equal(services.SnapshotMetadata.GetMetadataDelta.responseStream, true);
  for (const [service, methods] of Object.entries(services)) {
    for (const [name, method] of Object.entries(methods)) assert.equal(method.path, `/csi.v1.${service}/${name}`);
  }
});

test('a method of the table fits a server and a client of grpc-js', () => {
  type Create = typeof services.Controller.CreateVolume;
  const server: MethodDefinition<RequestOf<Create>, Init<ResponseOf<Create>>> = services.Controller.CreateVolume;
  const client: MethodDefinition<Init<RequestOf<Create>>, ResponseOf<Create>> = services.Controller.CreateVolume;
  const bytes = client.requestSerialize({ name: 'v1' });
  assert.ok(Buffer.isBuffer(bytes));
  assert.equal(server.requestDeserialize(bytes).name, 'v1');
  const answer = server.responseSerialize({ volume: { volumeId: 'id', capacityBytes: 7 } });
  assert.equal(client.responseDeserialize(answer).volume?.capacityBytes, 7);
  assert.equal(ProbeRequest.encode({}).finish().length, 0);
});

test('each request with secrets has them marked, and its name is the one in the service table', () => {
  const methods = Object.values(services).flatMap((service) => Object.values(service));
  const named = new Set(methods.map((method) => method.requestName));
  assert.ok(Object.keys(secretFields).every((name) => named.has(name)));
  for (const method of methods) {
    const has = 'secrets' in method.requestDeserialize(Buffer.alloc(0));
    assert.deepEqual(secretFields[method.requestName], has ? ['secrets'] : undefined, method.requestName);
  }
});
