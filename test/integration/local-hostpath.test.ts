import assert from 'node:assert/strict';
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Page, Snapshot, VolumeStatus } from '../../src/core/volume.ts';
import type { Bench } from './local-hostpath-support.ts';
import { failure, makeBench, makeFolder, sh, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const gib = 2 ** 30;

/** What is below the base path, without the empty folders that are always there. */
async function contents(base: string): Promise<string[]> {
  const own = ['v', 's', '.switchboard', '.switchboard/v', '.switchboard/s', '.switchboard/p', '.switchboard/tmp'];
  const all = (await readdir(base, { recursive: true })).filter((path) => !own.includes(path));
  return all.sort();
}

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
    [{ source: { type: 'snapshot', id: 'snapshot_driver=restic&snapshot_id=1' } }, 'UNIMPLEMENTED'],
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

test('ids that try to leave the base path touch nothing', async (t) => {
  const { base, call, volumes, snapshots, driver } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1'));
  await writeFile(join(base, 'precious'), 'x');
  await mkdir(join(base, 'folder'));
  const before = await contents(base);
  for (const id of ['..', '.', '../folder', '../precious', '/etc', 'v1/..', 'v1\0', 'v1\n', '', 'x'.repeat(10_240)]) {
    await volumes.delete(call, id);
    await snapshots.delete(call, id);
    await snapshots.delete(call, `snapshot_driver=filecopy&snapshot_id=${encodeURIComponent(id)}`);
    await assert.rejects(volumes.get?.(call, id) as Promise<unknown>, failure('NOT_FOUND'));
    await assert.rejects(snapshots.get(call, id), failure('NOT_FOUND'));
    await assert.rejects(snapshots.create(call, snapshotSpec('s', id)), failure('NOT_FOUND'));
    const { capabilities } = volumeSpec('x');
    await assert.rejects(
      volumes.validate(call, { volumeId: id, context: {}, capabilities, parameters: {} }),
      failure('NOT_FOUND'),
    );
    await assert.rejects(
      driver.expansion?.expand(call, { volumeId: id, capacity: {} }) as Promise<unknown>,
      failure('NOT_FOUND'),
    );
  }
  assert.deepEqual(await contents(base), before);
});

test('volumes and snapshots that democratic-csi made work fully', async (t) => {
  const base = await makeFolder(t);
  await mkdir(join(base, 'v/pvc-1'), { recursive: true });
  await mkdir(join(base, 's/pvc-1-snap-1'), { recursive: true });
  await writeFile(join(base, 'v/pvc-1/file'), 'v');
  await writeFile(join(base, 's/pvc-1-snap-1/file'), 's');
  const { call, volumes, snapshots, driver } = await makeBench(t, { base });
  const id = 'snapshot_driver=filecopy&snapshot_id=pvc-1-snap-1';
  const status = await volumes.get?.(call, 'pvc-1');
  assert.equal(status?.volume.capacityBytes, 0);
  assert.equal(status?.condition?.abnormal, false);
  const snapshot = await snapshots.get(call, id);
  assert.equal(snapshot.sourceVolumeId, 'pvc-1');
  assert.equal(snapshot.id, id);
  assert.ok(Math.abs(snapshot.createdAt.getTime() - Date.now()) < 60_000);
  assert.deepEqual(await snapshots.create(call, snapshotSpec('snap-1', 'pvc-1')), snapshot);
  assert.equal((await snapshots.list(call, { sourceVolumeId: 'pvc-1' }, {})).entries.length, 1);
  assert.equal((await snapshots.list(call, { sourceVolumeId: 'pvc' }, {})).entries.length, 0);
  await volumes.create(call, volumeSpec('restored', { source: { type: 'snapshot', id } }));
  assert.equal(await readFile(join(base, 'v/restored/file'), 'utf8'), 's');
  await assert.rejects(
    volumes.create(call, volumeSpec('pvc-1', { source: { type: 'snapshot', id } })),
    failure('ALREADY_EXISTS', /whole copy/),
  );
  assert.equal((await volumes.create(call, volumeSpec('pvc-1'))).capacityBytes, gib);
  assert.equal(await readFile(join(base, 'v/pvc-1/file'), 'utf8'), 'v');
  const expanded = await driver.expansion?.expand(call, { volumeId: 'pvc-1', capacity: { requiredBytes: 3 * gib } });
  assert.deepEqual(expanded, { capacityBytes: 3 * gib, nodeExpansionRequired: false });
  await volumes.delete(call, 'pvc-1');
  assert.equal((await snapshots.get(call, 'pvc-1-snap-1')).id, id);
  await snapshots.delete(call, id);
  await volumes.delete(call, 'restored');
  assert.deepEqual(await contents(base), []);
});

test('a snapshot keeps its first answer and survives its volume', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 * gib } }));
  await writeFile(join(base, 'v/v1/file'), 'before');
  const first = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.equal(first.sizeBytes, 2 * gib);
  assert.equal(first.readyToUse, true);
  await writeFile(join(base, 'v/v1/file'), 'after');
  assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
  await volumes.delete(call, 'v1');
  assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
  assert.deepEqual(await snapshots.get(call, first.id), first);
  const restored = await volumes.create(call, volumeSpec('v2', { source: { type: 'snapshot', id: first.id } }));
  assert.equal(restored.capacityBytes, 2 * gib);
  assert.deepEqual(restored.source, { type: 'snapshot', id: first.id });
  assert.equal(await readFile(join(base, 'v/v2/file'), 'utf8'), 'before');
  const bare = volumeSpec('v2', { source: { type: 'snapshot', id: 'v1-s1' } });
  assert.deepEqual((await volumes.create(call, bare)).source, { type: 'snapshot', id: 'v1-s1' });
  const small = volumeSpec('v3', { source: { type: 'snapshot', id: first.id }, capacity: { requiredBytes: gib } });
  await assert.rejects(volumes.create(call, small), failure('OUT_OF_RANGE'));
});

test('a snapshot name belongs to one volume', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  for (const name of ['a', 'a-b', 'x']) await volumes.create(call, volumeSpec(name));
  await snapshots.create(call, snapshotSpec('s', 'a'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s', 'x')), failure('ALREADY_EXISTS', /of volume a$/));
  await assert.rejects(
    snapshots.create(call, snapshotSpec('s', 'a', { parameters: { p: '1' } })),
    failure('ALREADY_EXISTS'),
  );
  // Both would be the folder a-b-c.
  await snapshots.create(call, snapshotSpec('c', 'a-b'));
  await assert.rejects(snapshots.create(call, snapshotSpec('b-c', 'a')), failure('ALREADY_EXISTS'));
  const long = 'l'.repeat(128);
  const { id } = await snapshots.create(call, snapshotSpec(long, 'a'));
  assert.ok(id.length <= 128);
  await assert.rejects(snapshots.create(call, snapshotSpec(long, 'x')), failure('ALREADY_EXISTS', /of volume a$/));
  assert.equal((await snapshots.list(call, { sourceVolumeId: 'a' }, {})).entries.length, 2);
  // Made by democratic-csi, and read by the longest volume id that fits.
  await mkdir(join(base, 's/a-b-peer'));
  await assert.rejects(snapshots.create(call, snapshotSpec('peer', 'x')), failure('ALREADY_EXISTS', /of volume a-b$/));
});

test('snapshots that cannot be taken', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s/1', 'v1')), failure('INVALID_ARGUMENT'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s1', 'v9')), failure('NOT_FOUND'));
  const by = (driver: string) => snapshots.create(call, snapshotSpec('s1', 'v1', { parameters: { driver } }));
  await assert.rejects(by('restic'), failure('UNIMPLEMENTED', /restic/));
  await assert.rejects(by('kopia'), failure('UNIMPLEMENTED'));
  await assert.rejects(by('tar'), failure('INVALID_ARGUMENT'));
  await assert.rejects(snapshots.delete(call, 'snapshot_driver=restic&snapshot_id=1'), failure('UNIMPLEMENTED'));
  assert.deepEqual(await readdir(join(base, 's')), []);
  const configured = await makeBench(t, { base, block: { snapshots: { default_driver: 'kopia' } } });
  await assert.rejects(configured.snapshots.create(call, snapshotSpec('s1', 'v1')), failure('UNIMPLEMENTED'));
  const { id } = await configured.snapshots.create(
    call,
    snapshotSpec('s1', 'v1', { parameters: { driver: 'filecopy' } }),
  );
  await configured.snapshots.delete(call, id);
});

test('expansion only ever grows', async (t) => {
  const { call, volumes, driver } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 * gib } }));
  const expand = async (requiredBytes?: number, limitBytes?: number) =>
    (await driver.expansion?.expand(call, { volumeId: 'v1', capacity: { requiredBytes, limitBytes } }))?.capacityBytes;
  assert.equal(await expand(3 * gib), 3 * gib);
  assert.equal(await expand(gib), 3 * gib);
  assert.equal(await expand(undefined, 4 * gib), 4 * gib);
  assert.equal((await volumes.get?.(call, 'v1'))?.volume.capacityBytes, 4 * gib);
  await assert.rejects(expand(undefined, 3 * gib), failure('OUT_OF_RANGE'));
  await assert.rejects(expand(6 * gib, 5 * gib), failure('OUT_OF_RANGE'));
  await assert.rejects(
    driver.expansion?.expand(call, { volumeId: 'v9', capacity: {} }) as Promise<unknown>,
    failure('NOT_FOUND'),
  );
});

async function all<T>(list: (token: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const found: T[] = [];
  let token: string | undefined;
  do {
    const page = await list(token);
    found.push(...page.entries);
    token = page.nextToken;
  } while (token !== undefined);
  return found;
}

test('listing has all volumes and snapshots, page by page', async (t) => {
  const { call, base, volumes, snapshots } = await makeBench(t);
  const list = (limit?: number) => all<VolumeStatus>((token) => volumes.list?.(call, { limit, token }) as never);
  const listSnapshots = (limit?: number) => all<Snapshot>((token) => snapshots.list(call, {}, { limit, token }));
  assert.deepEqual(await list(), []);
  assert.deepEqual(await listSnapshots(), []);
  for (const name of ['c', 'a', 'b', 'd']) await volumes.create(call, volumeSpec(name));
  for (const name of ['a', 'b', 'c']) await snapshots.create(call, snapshotSpec(`s-${name}`, name));
  await mkdir(join(base, 'v/lost+found'));
  const ids = (await list(3)).map((status) => status.volume.id);
  assert.deepEqual(ids, ['a', 'b', 'c', 'd']);
  assert.deepEqual(
    (await listSnapshots(2)).map((snapshot) => snapshot.sourceVolumeId),
    ['a', 'b', 'c'],
  );
  await assert.rejects(volumes.list?.(call, { token: 'invalid-token' }) as Promise<unknown>, failure('ABORTED'));
  const one = await snapshots.list(call, { snapshotId: 'b-s-b' }, {});
  assert.deepEqual(
    one.entries.map((snapshot) => snapshot.sourceVolumeId),
    ['b'],
  );
  assert.deepEqual((await snapshots.list(call, { snapshotId: 'no' }, {})).entries, []);
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

test('capacity is what is free where the base path is or will be, and nothing elsewhere', async (t) => {
  const { call, base, driver } = await makeBench(t);
  const query = { capabilities: [], parameters: {} };
  const ask = async (more: object = {}) => (await driver.capacity?.(call, { ...query, ...more }))?.availableBytes ?? -1;
  assert.ok((await ask()) > 0);
  await assert.rejects(stat(base), { code: 'ENOENT' });
  assert.ok((await ask({ topology: { 'example.org/node': 'node1', 'other/key': 'x' } })) > 0);
  assert.equal(await ask({ topology: { 'example.org/node': 'node2' } }), 0);
  assert.equal(await ask({ capabilities: [{ type: 'block', mode: 'SINGLE_NODE_WRITER' }] }), 0);
});

test('a volume that is mounted somewhere is not deleted', async (t) => {
  const { call, base, volumes } = await makeBench(t);
  const folder = await makeFolder(t);
  const target = join(folder, 'with space');
  await mkdir(target);
  await volumes.create(call, volumeSpec('v1'));
  await volumes.create(call, volumeSpec('v10'));
  await mkdir(join(base, 'v/v1/sub'));
  const mounted = async (from: string, to: string, body: () => Promise<void>) => {
    await sh('mount', '--bind', from, to);
    await body().finally(() => sh('umount', to));
  };
  const refused = (where: string) =>
    assert.rejects(volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION', new RegExp(`in use.*${where}`)));
  await mounted(join(base, 'v/v1'), target, () => refused('with space'));
  await mounted(join(base, 'v/v1/sub'), target, () => refused('with space'));
  await mounted(target, join(base, 'v/v1/sub'), () => refused('v/v1/sub'));
  // Also when the base path is reached by another way, and not because of its neighbour.
  const link = join(folder, 'link');
  await symlink(base, link);
  const other = await makeBench(t, { base: link });
  await mounted(join(base, 'v/v1'), target, async () => {
    await assert.rejects(other.volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION'));
    await other.volumes.delete(call, 'v10');
  });
  await volumes.delete(call, 'v1');
  assert.deepEqual(await contents(base), []);
});

test('owner and mode of new volumes and of clones', async (t) => {
  const block = { dirPermissionsMode: '2770', dirPermissionsUser: 'daemon', dirPermissionsGroup: 0 };
  const { call, base, volumes } = await makeBench(t, { block });
  await volumes.create(call, volumeSpec('v1'));
  const permissions = async (id: string) => {
    const { mode, uid, gid } = await stat(join(base, 'v', id));
    return [mode & 0o7777, uid, gid];
  };
  assert.deepEqual(await permissions('v1'), [0o2770, 1, 0]);
  await chmod(join(base, 'v/v1'), 0o700);
  await chown(join(base, 'v/v1'), 5, 5);
  await volumes.create(call, volumeSpec('v2', { source: { type: 'volume', id: 'v1' } }));
  assert.deepEqual(await permissions('v2'), [0o2770, 1, 0]);
  const unset = await makeBench(t, { base });
  await unset.volumes.create(call, volumeSpec('v3', { source: { type: 'volume', id: 'v1' } }));
  assert.deepEqual(await permissions('v3'), [0o700, 5, 5]);
  const group = await makeBench(t, { base, block: { dirPermissionsGroup: 'daemon' } });
  await group.volumes.create(call, volumeSpec('v4'));
  assert.deepEqual(await permissions('v4'), [0o755, 0, 1]);
  const unknown = await makeBench(t, { base, block: { dirPermissionsUser: 'nobody-of-this-name' } });
  await assert.rejects(unknown.volumes.create(call, volumeSpec('v5')), failure('FAILED_PRECONDITION', /no user/));
  await volumes.delete(call, 'v4');
  assert.deepEqual(
    (await contents(base)).filter((path) => path.includes('tmp') || path.includes('v5')),
    [],
  );
});

test('programs of the host that see the base path under its other name', async (t) => {
  const { call, base, volumes, snapshots } = await makeBench(t, {
    block: { shareBasePath: '/srv/shared' },
    // Stands for a host where only /srv/shared is there.
    run: async (_call, { program, args }) => {
      const seen = args.every((arg) => !arg.startsWith('/') || arg.startsWith('/srv/shared/'));
      if (program === 'cp' || program === 'sync') assert.ok(seen, args.join(' '));
      return { code: seen ? 0 : 1, stdout: '', stderr: '' };
    },
  });
  await volumes.create(call, volumeSpec('v1'));
  await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.ok((await stat(join(base, 's/v1-s1'))).isDirectory());
  const blind = await makeBench(t, { base, run: async () => ({ code: 1, stdout: '', stderr: '' }) });
  await assert.rejects(
    blind.snapshots.create(call, snapshotSpec('s2', 'v1')),
    failure('FAILED_PRECONDITION', /do not see/),
  );
});

test('folders of work: living owners keep theirs, dead ones do not, and strangers are believed for a while', async (t) => {
  const bench = await makeBench(t);
  const { base, call, volumes } = bench;
  await volumes.create(call, volumeSpec('v1'));
  const tmp = join(base, '.switchboard/tmp');
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).replace(/[^0-9a-f]/g, '').slice(0, 12);
  const namespace = (await sh('readlink', '/proc/self/ns/pid')).replace(/\D/g, '');
  const init = (await readFile('/proc/1/stat', 'utf8')).split(') ')[1]?.split(' ')[19];
  const folders = {
    living: `${boot}.${namespace}.1.${init}-aaaaaaaaaaaa`,
    dead: `${boot}.${namespace}.1.1-bbbbbbbbbbbb`,
    stranger: 'abcdef.1.1.1-cccccccccccc',
    longGone: 'abcdef.1.1.1-dddddddddddd',
    unreadable: 'something else',
  };
  for (const name of Object.values(folders)) await mkdir(join(tmp, name, 'trash/deep'), { recursive: true });
  const longAgo = new Date(Date.now() - 3_600_000);
  await utimes(join(tmp, folders.longGone), longAgo, longAgo);
  await volumes.delete(call, 'never-was');
  const left = [folders.living, folders.stranger, folders.unreadable].sort();
  assert.deepEqual((await readdir(tmp)).sort(), left);
});

test('a cancelled copy leaves nothing', async (t) => {
  const { base, call, volumes, snapshots } = await makeBench(t);
  await volumes.create(call, volumeSpec('v1'));
  await writeFile(join(base, 'v/v1/file'), 'x');
  await cancelDuring(t, base, 'cp', (bench, signal) =>
    bench.snapshots.create({ ...call, signal }, snapshotSpec('s1', 'v1')),
  );
  await cancelDuring(t, base, 'sync', (bench, signal) =>
    bench.volumes.create({ ...call, signal }, volumeSpec('v2', { source: { type: 'volume', id: 'v1' } })),
  );
  assert.deepEqual(await contents(base), ['.switchboard/v/v1.json', 'v/v1', 'v/v1/file']);
  await snapshots.create(call, snapshotSpec('s1', 'v1'));
});

async function cancelDuring(
  t: TestContext,
  base: string,
  program: string,
  start: (bench: Bench, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const controller = new AbortController();
  const { createRunner } = await import('../../src/backends/exec/runner.ts');
  const real = createRunner();
  const bench = await makeBench(t, {
    base,
    run: (call, command) => {
      if (command.program === program) controller.abort();
      return real(call, command);
    },
  });
  await assert.rejects(start(bench, controller.signal), failure('CANCELLED'));
}

test('two processes that make the same volume at once get the same one', async (t) => {
  const first = await makeBench(t);
  const second = await makeBench(t, { base: first.base });
  const spec = volumeSpec('v1');
  const made = await Promise.allSettled([
    ...Array.from({ length: 8 }, () => first.volumes.create(first.call, spec)),
    ...Array.from({ length: 8 }, () => second.volumes.create(second.call, spec)),
  ]);
  assert.deepEqual(
    made.filter((one) => one.status === 'rejected').map((one) => one.reason),
    [],
  );
  assert.deepEqual(await contents(first.base), ['.switchboard/v/v1.json', 'v/v1']);
});
