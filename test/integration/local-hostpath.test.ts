import assert from 'node:assert/strict';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { contents, failure, makeBench, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const gib = 2 ** 30;

test('a volume is a directory with a record beside it, and both are gone after deletion', async (t) => {
  const { base, call, volumes } = await makeBench(t);
  const volume = await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 5 * gib } }));
  assert.deepEqual(volume, {
    id: 'v1',
    capacityBytes: 5 * gib,
    context: { node_attach_driver: 'hostpath', path: join(base, 'v/v1'), provisioner_driver: 'local-hostpath' },
    source: undefined,
    topology: [{ 'example.org/node': 'node1' }],
  });
  assert.deepEqual(await contents(base), ['.switchboard/v/v1.json', 'v/v1']);
  assert.equal((await stat(join(base, 'v/v1'))).mode & 0o7777, 0o755);
  await writeFile(join(base, 'v/v1/file'), 'x');
  await volumes.delete(call, 'v1');
  assert.deepEqual(await contents(base), []);
  await volumes.delete(call, 'v1');
});

test('the context has the instance id and the path that nodes see', async (t) => {
  const { base, call, volumes } = await makeBench(t, {
    config: { instance_id: 'i1' },
    block: { shareBasePath: '/on/the/host/' },
  });
  const volume = await volumes.create(call, volumeSpec('v1'));
  assert.equal(volume.context.path, '/on/the/host/v/v1');
  assert.equal(volume.context.provisioner_driver_instance_id, 'i1');
  assert.ok((await stat(join(base, 'v/v1'))).isDirectory());
});

test('an equal repeat has an equal answer, another request for the same name is ALREADY_EXISTS', async (t) => {
  const { call, volumes } = await makeBench(t);
  const capacity = { requiredBytes: 5 * gib, limitBytes: 10 * gib };
  const spec = volumeSpec('v1', { capacity, parameters: { a: '1' } });
  const first = await volumes.create(call, spec);
  assert.deepEqual(await volumes.create(call, spec), first);
  assert.deepEqual(await volumes.create(call, { ...spec, capacity: { requiredBytes: 2 * gib } }), first);
  const wrong = [
    { ...spec, capacity: { requiredBytes: 6 * gib } },
    { ...spec, capacity: { limitBytes: 4 * gib } },
    { ...spec, parameters: { a: '2' } },
    { ...spec, parameters: {} },
  ];
  for (const other of wrong) await assert.rejects(volumes.create(call, other), failure('ALREADY_EXISTS'));
  await volumes.create(call, volumeSpec('v2'));
  const cloned = { ...spec, source: { type: 'volume', id: 'v2' } } as const;
  await assert.rejects(volumes.create(call, cloned), failure('ALREADY_EXISTS', /made empty/));
});

test('requests that cannot be served leave nothing', async (t) => {
  const { base, call, volumes } = await makeBench(t);
  const mount = volumeSpec('v1').capabilities[0];
  assert.ok(mount?.type === 'mount');
  const cases = [
    [{ capabilities: [{ type: 'block', mode: 'SINGLE_NODE_WRITER' }] }, 'INVALID_ARGUMENT'],
    [{ capabilities: [{ ...mount, fsType: 'ext4' }] }, 'INVALID_ARGUMENT'],
    [{ mutableParameters: { a: '1' } }, 'INVALID_ARGUMENT'],
    [{ capacity: { requiredBytes: 10 * gib, limitBytes: 5 * gib } }, 'OUT_OF_RANGE'],
    [{ topology: { requisite: [{ 'example.org/node': 'node2' }], preferred: [] } }, 'RESOURCE_EXHAUSTED'],
    [{ source: { type: 'snapshot', id: 'v9-s9' } }, 'NOT_FOUND'],
    [{ source: { type: 'volume', id: 'v9' } }, 'NOT_FOUND'],
    [{ source: { type: 'volume', id: '../v' } }, 'NOT_FOUND'],
    [{ source: { type: 'snapshot', id: 'snapshot_driver=restic&snapshot_id=1' } }, 'FAILED_PRECONDITION'],
  ] as const;
  for (const [more, code] of cases) await assert.rejects(volumes.create(call, volumeSpec('v1', more)), failure(code));
  await assert.rejects(volumes.create(call, volumeSpec('a\nb')), failure('INVALID_ARGUMENT'));
  await assert.rejects(stat(base), { code: 'ENOENT' });
});

test('names that are no directory names, and very long ones', async (t) => {
  const { base, call, volumes } = await makeBench(t, { environment: { maxIdBytes: 100 } });
  assert.equal((await volumes.create(call, volumeSpec('web[0]'))).id, 'web.5b0.5d');
  const { id } = await volumes.create(call, volumeSpec('n'.repeat(128)));
  assert.equal(id.length, 100);
  assert.equal(volumes.idFor(volumeSpec('n'.repeat(128))), id);
  assert.deepEqual((await readdir(join(base, 'v'))).sort(), [id, 'web.5b0.5d']);
  assert.equal((await volumes.get?.(call, id))?.volume.id, id);
  await volumes.delete(call, id);
  await volumes.delete(call, 'web.5b0.5d');
  assert.deepEqual(await contents(base), []);
});

test('two names with one hash do not share a volume', async (t) => {
  const { call, volumes } = await makeBench(t, {
    config: { _private: { csi: { volume: { idHash: { strategy: 'crc8' } } } } },
  });
  const byId = new Map<string, string>();
  for (let index = 0; index <= 256; index++) {
    const name = `n${index}`;
    const id = volumes.idFor(volumeSpec(name));
    const other = byId.get(id);
    byId.set(id, name);
    if (other === undefined) continue;
    await volumes.create(call, volumeSpec(other));
    await assert.rejects(volumes.create(call, volumeSpec(name)), failure('ALREADY_EXISTS', new RegExp(`"${other}"`)));
    return;
  }
  assert.fail('257 names have 257 hashes of 8 bits');
});

test('with an id template and retain, a volume is kept and given to its next claim', async (t) => {
  const volume = { idTemplate: '{{parameters.pvc}}', deleteStrategy: 'retain' };
  const { base, call, volumes } = await makeBench(t, { config: { _private: { csi: { volume } } } });
  const first = await volumes.create(call, volumeSpec('pvc-1', { parameters: { pvc: 'data', pv: 'pvc-1' } }));
  assert.equal(first.id, 'data');
  await writeFile(join(base, 'v/data/file'), 'kept');
  await volumes.delete(call, 'data');
  const spec = volumeSpec('pvc-2', { parameters: { pvc: 'data', pv: 'pvc-2' }, capacity: { requiredBytes: 2 * gib } });
  assert.equal((await volumes.create(call, spec)).capacityBytes, 2 * gib);
  assert.equal(await readFile(join(base, 'v/data/file'), 'utf8'), 'kept');
});

test('the condition of a volume tells what became of its directory', async (t) => {
  const { call, base, volumes } = await makeBench(t);
  for (const name of ['fine', 'gone', 'file']) await volumes.create(call, volumeSpec(name));
  await rm(join(base, 'v/gone'), { recursive: true });
  await rm(join(base, 'v/file'), { recursive: true });
  await writeFile(join(base, 'v/file'), 'x');
  const conditions = (await volumes.list?.(call, {}))?.entries.map(({ volume, condition }) => [
    volume.id,
    condition?.abnormal,
  ]);
  assert.deepEqual(conditions, [
    ['file', true],
    ['fine', false],
    ['gone', true],
  ]);
  await assert.rejects(volumes.create(call, volumeSpec('file')), failure('FAILED_PRECONDITION', /not a directory/));
  assert.equal(
    (await volumes.create(call, volumeSpec('gone', { capacity: { requiredBytes: 7 * gib } }))).capacityBytes,
    7 * gib,
  );
  for (const name of ['fine', 'gone', 'file']) await volumes.delete(call, name);
  assert.deepEqual(await contents(base), []);
});

test('a damaged record is reported, never guessed, and hides nothing else', async (t) => {
  const { call, base, volumes, snapshots } = await makeBench(t);
  for (const name of ['a', 'b']) {
    await volumes.create(call, volumeSpec(name));
    await snapshots.create(call, snapshotSpec(`s-${name}`, name));
  }
  const records = [join(base, '.switchboard/v/a.json'), join(base, '.switchboard/s/a-s-a.json')] as const;
  for (const record of records) await writeFile(record, '{"format":1');
  const listed = (await volumes.list?.(call, {}))?.entries.map(({ volume, condition }) => [
    volume.id,
    condition?.abnormal,
  ]);
  assert.deepEqual(listed, [
    ['a', true],
    ['b', false],
  ]);
  assert.equal((await snapshots.list(call, {}, {})).entries.length, 1);
  await assert.rejects(volumes.create(call, volumeSpec('a')), failure('DATA_LOSS', /v\/a\.json/));
  await assert.rejects(volumes.delete(call, 'a'), failure('DATA_LOSS'));
  await assert.rejects(snapshots.get(call, 'a-s-a'), failure('DATA_LOSS'));
  for (const record of records) await rm(record);
  for (const name of ['a', 'b']) {
    await volumes.delete(call, name);
    await snapshots.delete(call, `${name}-s-${name}`);
  }
  assert.deepEqual(await contents(base), []);
});

test('validation compares with what is known of the volume', async (t) => {
  const { call, volumes } = await makeBench(t);
  const { capabilities } = volumeSpec('x');
  const { context } = await volumes.create(call, volumeSpec('v1', { parameters: { a: '1' } }));
  const validate = (more: object) =>
    volumes.validate(call, { volumeId: 'v1', context: {}, capabilities, parameters: {}, ...more });
  assert.deepEqual(await validate({ context, parameters: { a: '1' } }), { confirmed: true });
  assert.deepEqual(await validate({ context: { ...context, 'storage.kubernetes.io/csiProvisionerIdentity': 'x' } }), {
    confirmed: true,
  });
  assert.equal((await validate({ context: { ...context, path: '/elsewhere' } })).confirmed, false);
  assert.equal((await validate({ parameters: { a: '2' } })).confirmed, false);
  assert.equal((await validate({ capabilities: [{ type: 'block', mode: 'SINGLE_NODE_WRITER' }] })).confirmed, false);
  await assert.rejects(validate({ volumeId: 'v9' }), failure('NOT_FOUND'));
});
