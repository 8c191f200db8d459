/** Snapshots by kopia, with a stand-in that enforces its command line. */
import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { createLogger } from '../../src/core/logger.ts';
import type { Bench } from './local-hostpath-support.ts';
import { failure, makeBench, makeFolder, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const standIn = join(import.meta.dirname, '../stand-ins/kopia.mjs');

interface KopiaBench extends Bench {
  readonly repository: string;
  /** What is in the repository. */
  manifests(): Promise<readonly Manifest[]>;
  /** The private folders that kopia was given. */
  folders(): readonly string[];
}

interface Manifest {
  readonly id: string;
  readonly source: { readonly host: string; readonly userName: string; readonly path: string };
  readonly tags: Readonly<Record<string, string>>;
  readonly pins?: readonly string[];
}

async function kopiaBench(
  t: TestContext,
  options: { root?: string; password?: string; instance?: string } = {},
): Promise<KopiaBench> {
  const root = options.root ?? (await makeFolder(t));
  const repository = join(root, 'repository');
  await mkdir(repository, { recursive: true });
  await writeFile(join(repository, 'kopia.password'), 'correct horse');
  const program = join(root, 'kopia');
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${standIn} "$@"\n`, { mode: 0o755 });
  const password = options.password ?? 'correct horse';
  const config_token = Buffer.from(JSON.stringify({ path: repository, password })).toString('base64');
  const lines: string[] = [];
  const bench = await makeBench(t, {
    base: join(root, 'base'),
    config: options.instance ? { instance_id: options.instance } : {},
    block: {
      snapshots: {
        default_driver: 'kopia',
        kopia: { config_token, tags: ['team:a'], global_flags: ['--log-level=error'] },
      },
    },
    run: createRunner({ paths: { kopia: program } }),
    environment: { log: createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) }) },
  });
  t.after(() => {
    const told = [...lines, ...bench.commands.map(({ args }) => args.join(' '))];
    assert.ok(
      told.every((line) => !line.includes(config_token)),
      'the token was told',
    );
  });
  const names = async () => (await readdir(repository)).filter((name) => name.endsWith('.json'));
  return {
    ...bench,
    repository,
    manifests: async () =>
      Promise.all((await names()).map(async (name) => JSON.parse(await readFile(join(repository, name), 'utf8')))),
    folders: () => [
      ...new Set(
        bench.commands.flatMap(({ program: name, env }) => (name === 'kopia' ? (env?.KOPIA_LOG_DIR ?? '') : [])),
      ),
    ],
  };
}

test('a snapshot in kopia: taken, told, listed, restored, removed', async (t) => {
  const bench = await kopiaBench(t, { instance: 'disk1' });
  const { base, call, volumes, snapshots, driver } = bench;
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 ** 30 } }));
  await writeFile(join(base, 'v/v1/file'), 'before');
  const first = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.match(first.id, /^snapshot_driver=kopia&snapshot_id=[0-9a-f]{32}$/);
  assert.deepEqual([first.readyToUse, first.sizeBytes], [true, 2 ** 30]);
  const [manifest] = await bench.manifests();
  assert.deepEqual(manifest?.source, { host: 'test-node1', userName: 'democratic-csi', path: join(base, 'v/v1') });
  assert.deepEqual(manifest.tags, {
    'tag:source': 'democratic-csi',
    'tag:csi_volume_id': 'v1',
    'tag:csi_instance_id': 'disk1',
    'tag:csi_snapshot_name': 's1',
    'tag:csi_size_bytes': `${2 ** 30}`,
    'tag:team': 'a',
  });
  // A policy would remove it when there are enough newer ones.
  assert.equal(manifest.pins?.length, 1);
  await writeFile(join(base, 'v/v1/file'), 'after');
  assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
  assert.deepEqual(await snapshots.get(call, first.id), first);
  assert.deepEqual((await snapshots.list(call, { sourceVolumeId: 'v1' }, {})).entries, [first]);
  await volumes.create(call, volumeSpec('v2'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s1', 'v2')), failure('ALREADY_EXISTS'));
  const source = { type: 'snapshot', id: first.id } as const;
  await volumes.create(call, volumeSpec('back', { source }));
  assert.equal(await readFile(join(base, 'v/back/file'), 'utf8'), 'before');
  await snapshots.delete(call, first.id);
  await snapshots.delete(call, first.id);
  assert.deepEqual(await bench.manifests(), []);
  await assert.rejects(volumes.create(call, volumeSpec('none', { source })), failure('NOT_FOUND'));
  assert.deepEqual(await readdir(join(base, 'v')), ['back', 'v1', 'v2']);

  const connections = bench.commands.filter(({ args }) => args.includes('connect'));
  assert.equal(connections.length, 1);
  const [folder = ''] = bench.folders();
  assert.equal(bench.folders().length, 1);
  await access(join(folder, '../repository.config'));
  await driver.close();
  await assert.rejects(access(join(folder, '..')));
});

test('what democratic-csi left in a kopia repository is found and removed; what is not whole is not', async (t) => {
  const bench = await kopiaBench(t);
  const { base, call, volumes, snapshots, repository } = bench;
  await volumes.create(call, volumeSpec('v1'));
  const id = '0123456789abcdef0123456789abcdef';
  const manifest = {
    id,
    source: { host: 'test-node1', userName: 'democratic-csi', path: join(base, 'v/v1') },
    startTime: '2024-01-02T03:04:05Z',
    stats: { totalSize: 77 },
    rootEntry: { summ: { size: 77, numFailed: 0 } },
    tags: { 'tag:source': 'democratic-csi', 'tag:csi_volume_id': 'v1', 'tag:csi_snapshot_name': 's1' },
  };
  await mkdir(join(repository, id));
  const write = (more: object) => writeFile(join(repository, `${id}.json`), JSON.stringify({ ...manifest, ...more }));
  const given = `snapshot_driver=kopia&snapshot_id=${id}`;
  for (const half of [{ incomplete: 'checkpoint' }, { rootEntry: { summ: { numFailed: 2 } } }]) {
    await write(half);
    await assert.rejects(snapshots.get(call, given), failure('NOT_FOUND'));
  }
  await write({});
  const found = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.deepEqual(found, {
    id: given,
    sourceVolumeId: 'v1',
    sizeBytes: 77,
    createdAt: new Date('2024-01-02T03:04:05Z'),
    readyToUse: true,
  });
  await snapshots.delete(call, given);
  assert.deepEqual(await bench.manifests(), []);
});

test('a snapshot that kopia could not make whole is an error, and goes with the next try', async (t) => {
  const bench = await kopiaBench(t);
  const { base, call, volumes, snapshots } = bench;
  await volumes.create(call, volumeSpec('v1'));
  await mkdir(join(base, 'v/v1/unreadable'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s1', 'v1')), failure('INTERNAL', /permission denied/));
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, []);
});

test('a token that does not work is said, not shown', async (t) => {
  const root = await makeFolder(t);
  const bench = await kopiaBench(t, { root, password: 'wrong' });
  const { call, volumes, snapshots } = bench;
  await volumes.create(call, volumeSpec('v1'));
  await assert.rejects(
    snapshots.create(call, snapshotSpec('s1', 'v1')),
    failure('FAILED_PRECONDITION', /invalid repository password/),
  );
  await assert.rejects(snapshots.list(call, {}, {}), failure('FAILED_PRECONDITION'));
  for (const folder of bench.folders()) await assert.rejects(access(join(folder, '..')));
  const none = await makeBench(t, { base: join(root, 'base'), block: { snapshots: { default_driver: 'kopia' } } });
  await assert.rejects(
    none.snapshots.create(call, snapshotSpec('s1', 'v1')),
    failure('FAILED_PRECONDITION', /config_token/),
  );
});
