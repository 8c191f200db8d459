/** Snapshots in a real restic repository. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { createLogger } from '../../src/core/logger.ts';
import { held } from './held-program.ts';
import type { Bench, BenchOptions } from './local-hostpath-support.ts';
import {
  failure,
  makeBench,
  makeFolder,
  mountImage,
  noProjectQuotas,
  sh,
  snapshotSpec,
  volumeSpec,
} from './local-hostpath-support.ts';

const execute = promisify(execFile);
const gib = 2 ** 30;
const missing = await execute('restic', ['version']).then(
  () => false,
  () => 'restic is not installed',
);
const real = { skip: missing };

interface ResticBench extends Bench {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs restic on the same repository; its standard output. */
  restic(...args: readonly string[]): Promise<string>;
  list(): Promise<readonly Listed[]>;
}

interface Listed {
  readonly id: string;
  readonly hostname: string;
  readonly paths: readonly string[];
  readonly tags: readonly string[];
}

async function resticBench(
  t: TestContext,
  options: BenchOptions & { readonly root?: string; readonly more?: object; readonly wait?: number } = {},
): Promise<ResticBench> {
  const root = options.root ?? (await makeFolder(t));
  const env = {
    RESTIC_REPOSITORY: join(root, 'repository'),
    RESTIC_PASSWORD: 'correct horse',
    RESTIC_CACHE_DIR: join(root, 'cache'),
  };
  const snapshots = {
    default_driver: 'restic',
    answer_within: options.wait ?? 3600,
    restic: { env, tags: ['team=a'], ...options.more },
  };
  const bench = await makeBench(t, { base: join(root, 'base'), ...options, block: { snapshots, ...options.block } });
  const restic = async (...args: readonly string[]) => {
    const { stdout } = await execute('restic', [...args], { env: { ...process.env, ...env } });
    return stdout;
  };
  return { ...bench, root, env, restic, list: async () => JSON.parse(await restic('snapshots', '--json')) ?? [] };
}

/** No call waits for a backup. */
const slow = { wait: 0 };

const innerOf = (id: string) => new URLSearchParams(id).get('snapshot_id') ?? '';

test('a snapshot in restic: taken, told, listed, restored, removed', real, async (t) => {
  const bench = await resticBench(t, { config: { instance_id: 'disk1' } });
  const { base, call, volumes, snapshots, commands } = bench;
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 * gib } }));
  await mkdir(join(base, 'v/v1/folder'));
  await writeFile(join(base, 'v/v1/folder/file'), 'before');
  await sh('chown', '1234:4321', join(base, 'v/v1'));
  await chmod(join(base, 'v/v1'), 0o2750);
  const first = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.equal(first.readyToUse, true);
  assert.equal(first.sizeBytes, 2 * gib);
  assert.match(first.id, /^snapshot_driver=restic&snapshot_id=[0-9a-f]{64}$/);
  const [stored] = await bench.list();
  assert.equal(stored?.id, innerOf(first.id));
  assert.equal(stored.hostname, 'test-node1');
  assert.deepEqual(stored.paths, [join(base, 'v/v1')]);
  const tags = ['source=democratic-csi', 'csi_volume_id=v1', 'csi_instance_id=disk1', 'csi_snapshot_name=s1'];
  assert.deepEqual(stored.tags, [...tags, `csi_size_bytes=${2 * gib}`, 'team=a']);

  await writeFile(join(base, 'v/v1/folder/file'), 'after');
  assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
  assert.deepEqual(await snapshots.get(call, first.id), first);
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, [first]);
  assert.deepEqual((await snapshots.list(call, { sourceVolumeId: 'v1' }, {})).entries, [first]);
  assert.deepEqual((await snapshots.list(call, { snapshotId: first.id }, {})).entries, [first]);
  assert.deepEqual((await snapshots.list(call, { sourceVolumeId: 'v' }, {})).entries, []);
  await volumes.create(call, volumeSpec('v2'));
  await assert.rejects(snapshots.create(call, snapshotSpec('s1', 'v2')), failure('ALREADY_EXISTS', /of volume v1$/));

  await volumes.delete(call, 'v1');
  const source = { type: 'snapshot', id: first.id } as const;
  const restored = await volumes.create(call, volumeSpec('back', { source }));
  assert.equal(restored.capacityBytes, 2 * gib);
  assert.deepEqual(restored.source, source);
  assert.deepEqual((await volumes.get?.(call, 'back'))?.volume.source, source);
  assert.equal(await readFile(join(base, 'v/back/folder/file'), 'utf8'), 'before');
  const { mode, uid, gid } = await stat(join(base, 'v/back'));
  assert.deepEqual([mode & 0o7777, uid, gid], [0o2750, 1234, 4321]);
  assert.deepEqual((await volumes.create(call, volumeSpec('back', { source }))).source, source);

  await snapshots.delete(call, first.id);
  await snapshots.delete(call, first.id);
  assert.deepEqual(await bench.list(), []);
  await assert.rejects(snapshots.get(call, first.id), failure('NOT_FOUND'));
  await assert.rejects(volumes.create(call, volumeSpec('gone', { source })), failure('NOT_FOUND'));
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
  assert.deepEqual(await readdir(join(base, '.switchboard/c')), []);
  const ran = commands.filter(({ program }) => program === 'restic');
  assert.equal(ran.filter(({ args }) => args[0] === 'init').length, 1);
  assert.ok(ran.every(({ args }) => !args.join(' ').includes('correct horse')));
});

test('what democratic-csi left in a repository is found, restored and removed', real, async (t) => {
  const root = await makeFolder(t);
  const bench = await resticBench(t, { root, config: { instance_id: 'disk1' } });
  const { base, call, volumes, snapshots } = bench;
  await volumes.create(call, volumeSpec('v1'));
  await writeFile(join(base, 'v/v1/file'), 'x');
  await bench.restic('init');
  // Its host is "undefined", and its instance is glued to the volume.
  const glued = 'source=democratic-csi,csi_volume_id=v1csi_instance_id=disk1';
  await bench.restic('backup', '--host', 'undefined', '--tag', glued, join(base, 'v/v1'));
  await bench.restic('tag', '--add', 'csi_snapshot_name=s1');
  const [{ id } = { id: '' }] = await bench.list();
  const given = `snapshot_driver=restic&snapshot_id=${id}`;
  const found = await snapshots.get(call, given);
  assert.equal(found.sourceVolumeId, 'v1');
  assert.equal(found.sizeBytes, 1);
  await volumes.create(call, volumeSpec('back', { source: { type: 'snapshot', id: given } }));
  assert.equal(await readFile(join(base, 'v/back/file'), 'utf8'), 'x');
  // Another node may have a volume of this name at the same path: by name, it is not this one's.
  const own = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.notEqual(own.id, given);
  await snapshots.delete(call, given);
  await snapshots.delete(call, own.id);
  assert.deepEqual(await bench.list(), []);
});

test('snapshots of others in the repository stay what they are', real, async (t) => {
  const root = await makeFolder(t);
  const bench = await resticBench(t, { root });
  const other = await resticBench(t, { root, environment: { nodeName: 'node2' } });
  const { base, call, volumes, snapshots } = bench;
  await volumes.create(call, volumeSpec('v1'));
  const theirs = await other.snapshots.create(call, snapshotSpec('s1', 'v1'));
  const ours = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  assert.notEqual(ours.id, theirs.id);
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, [ours]);
  await bench.restic('backup', '--tag', 'mine', join(base, 'v/v1'));
  const foreign = (await bench.list()).find(({ tags }) => tags.includes('mine'))?.id;
  const id = `snapshot_driver=restic&snapshot_id=${foreign}`;
  await snapshots.delete(call, id);
  await assert.rejects(snapshots.get(call, id), failure('NOT_FOUND'));
  assert.ok((await bench.list()).some(({ tags }) => tags.includes('mine')));
});

test('a wrong password, no repository, no program: said plainly, without the secret', real, async (t) => {
  const root = await makeFolder(t);
  const right = await resticBench(t, { root });
  const { call, volumes, snapshots } = right;
  await volumes.create(call, volumeSpec('v1'));
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, []);
  await snapshots.create(call, snapshotSpec('s1', 'v1'));
  const lines: string[] = [];
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) });
  const env = { ...right.env, RESTIC_PASSWORD: 'battery staple' };
  const wrong = await resticBench(t, { root, more: { env }, environment: { log } });
  const refused = failure('FAILED_PRECONDITION', /password is wrong/);
  const detached = { ...call, log };
  await assert.rejects(wrong.snapshots.create(detached, snapshotSpec('s2', 'v1')), refused);
  await assert.rejects(wrong.snapshots.list(detached, {}, {}), refused);
  await assert.rejects(
    wrong.snapshots.delete(detached, `snapshot_driver=restic&snapshot_id=${'0'.repeat(64)}`),
    refused,
  );
  assert.ok(lines.length > 0 && lines.every((line) => !line.includes('battery staple')));
  const nowhere = await resticBench(t, { root, more: { env: {} } });
  await assert.rejects(
    nowhere.snapshots.create(call, snapshotSpec('s3', 'v1')),
    failure('FAILED_PRECONDITION', /RESTIC_REPOSITORY/),
  );
  const run = createRunner({ paths: { restic: join(root, 'none') } });
  const none = await resticBench(t, { root, run });
  await assert.rejects(
    none.snapshots.create(call, snapshotSpec('s4', 'v1')),
    failure('FAILED_PRECONDITION', /was not found/),
  );
});

test('a backup that is killed leaves nothing that counts, and the next try makes it whole', real, async (t) => {
  const root = await makeFolder(t);
  const first = await resticBench(t, { root });
  const { base, call, volumes } = first;
  await volumes.create(call, volumeSpec('v1'));
  await sh('dd', 'if=/dev/urandom', `of=${join(base, 'v/v1/data')}`, 'bs=1M', 'count=40', 'status=none');
  await first.restic('init');
  // It is killed when it has begun to send data.
  const script = join(root, 'killed');
  await writeFile(
    script,
    `#!/bin/sh\ncase "$1" in backup) restic --limit-upload 1000 "$@" & p=$!; until [ -n "$(find '${root}/repository/data' -type f)" ]; do sleep 0.05; done; kill -9 $p; wait $p; exit 1;; *) exec restic "$@";; esac\n`,
  );
  await chmod(script, 0o755);
  const killed = await resticBench(t, { root, run: createRunner({ paths: { restic: script } }) });
  await assert.rejects(killed.snapshots.create(call, snapshotSpec('s1', 'v1')), failure('INTERNAL'));
  assert.deepEqual(await first.list(), []);
  const { id } = await first.snapshots.create(call, snapshotSpec('s1', 'v1'));
  await volumes.create(call, volumeSpec('back', { source: { type: 'snapshot', id } }));
  await sh('cmp', join(base, 'v/v1/data'), join(base, 'v/back/data'));
  // The lock of the one that was killed is not in the way.
  await first.snapshots.delete(call, id);
});

test('a backup that could not read everything is an error, and is not kept', real, async (t) => {
  const root = await makeFolder(t);
  const says = async (complaint: object) => {
    const script = join(root, 'restic');
    const text = JSON.stringify({ message_type: 'error', during: 'archival', item: '/x/a', error: complaint });
    await writeFile(
      script,
      `#!/bin/sh\ncase "$1" in backup) restic "$@"; echo '${text}' >&2; exit 3;; *) exec restic "$@";; esac\n`,
    );
    await chmod(script, 0o755);
    return await resticBench(t, { root, run: createRunner({ paths: { restic: script } }) });
  };
  const denied = await says({ Op: 'open', Path: '/x/a', Err: 13 });
  const { call, volumes } = denied;
  await denied.restic('init');
  await volumes.create(call, volumeSpec('v1'));
  await assert.rejects(denied.snapshots.create(call, snapshotSpec('s1', 'v1')), failure('INTERNAL', /\/x\/a: open 13/));
  assert.deepEqual(await denied.list(), []);
  const told = await says({ message: 'read /x/a: input/output error' });
  await assert.rejects(
    told.snapshots.create(call, snapshotSpec('s1', 'v1')),
    failure('INTERNAL', /input\/output error/),
  );
  assert.deepEqual(await denied.list(), []);
  assert.deepEqual(await readdir(join(root, 'base/.switchboard/c')), []);
  const vanished = await says({ Op: 'lstat', Path: '/x/a', Err: 2 });
  assert.equal((await vanished.snapshots.create(call, snapshotSpec('s1', 'v1'))).readyToUse, true);
  assert.equal((await denied.list()).length, 1);
});

test('a restore with errors is an error, even one that restic ignores, and leaves no volume', real, async (t) => {
  const root = await makeFolder(t);
  const script = join(root, 'restic');
  const complaint = 'ignoring error for /x: lchown: operation not permitted\nFatal: There were 1 errors';
  await writeFile(
    script,
    `#!/bin/sh\ncase "$1" in restore) restic "$@"; echo '${complaint}' >&2; exit 1;; *) exec restic "$@";; esac\n`,
    { mode: 0o755 },
  );
  const { base, call, volumes, snapshots } = await resticBench(t, {
    root,
    run: createRunner({ paths: { restic: script } }),
  });
  await volumes.create(call, volumeSpec('v1'));
  await writeFile(join(base, 'v/v1/file'), 'content');
  const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  const restore = volumes.create(call, volumeSpec('back', { source: { type: 'snapshot', id } }));
  await assert.rejects(restore, failure('INTERNAL', /ignoring error for \/x/));
  assert.deepEqual(await readdir(join(base, 'v')), ['v1']);
  assert.deepEqual(await readdir(join(base, '.switchboard/tmp')), []);
});

test('removal prunes where it is configured', real, async (t) => {
  const bench = await resticBench(t, { more: { prune: 'yes' } });
  const { base, call, volumes, snapshots, root } = bench;
  await volumes.create(call, volumeSpec('v1'));
  await sh('dd', 'if=/dev/urandom', `of=${join(base, 'v/v1/data')}`, 'bs=1M', 'count=4', 'status=none');
  const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  await snapshots.delete(call, id);
  assert.equal(await sh('find', join(root, 'repository/data'), '-type', 'f'), '');
});

test('a restored volume is in its project quota', { skip: missing || noProjectQuotas }, async (t) => {
  const root = await mountImage(t, 400, ['mkfs.xfs', '-q', '-f'], 'loop,prjquota');
  const { base, call, volumes, snapshots } = await resticBench(t, {
    root,
    block: { quota: 'project' },
  });
  await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 50 * 2 ** 20 } }));
  await writeFile(join(base, 'v/v1/file'), 'content');
  const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  const source = { type: 'snapshot', id } as const;
  await volumes.create(call, volumeSpec('back', { source, capacity: { requiredBytes: 60 * 2 ** 20 } }));
  assert.equal(await readFile(join(base, 'v/back/file'), 'utf8'), 'content');
  const tooMuch = sh('dd', 'if=/dev/zero', `of=${join(base, 'v/back/more')}`, 'bs=1M', 'count=70', 'status=none');
  await assert.rejects(tooMuch, /No space left|quota/);
});

test(
  'a long backup has an id of its own from the first, which leads to the snapshot when it is there',
  real,
  async (t) => {
    const root = await makeFolder(t);
    const restic = held('restic', 'backup');
    const bench = await resticBench(t, { root, run: restic.run, ...slow });
    const { base, call, volumes, snapshots, driver } = bench;
    await volumes.create(call, volumeSpec('v1'));
    await writeFile(join(base, 'v/v1/file'), 'content');
    await bench.restic('init');
    const first = await snapshots.create(call, snapshotSpec('s1', 'v1'));
    assert.equal(first.id, 'snapshot_driver=restic&snapshot_id=v1-s1');
    assert.equal(first.readyToUse, false);
    await restic.started(1);
    assert.deepEqual(await snapshots.create(call, snapshotSpec('s1', 'v1')), first);
    assert.deepEqual((await snapshots.list(call, {}, {})).entries, [first]);
    await assert.rejects(volumes.delete(call, 'v1'), failure('FAILED_PRECONDITION'));
    restic.waiting[0]?.go();
    await driver.idle?.();
    const ready = { ...first, readyToUse: true };
    for (const told of [
      await snapshots.create(call, snapshotSpec('s1', 'v1')),
      await snapshots.get(call, first.id),
      ...(await snapshots.list(call, {}, {})).entries,
      ...(await snapshots.list(call, { snapshotId: first.id }, {})).entries,
    ]) {
      assert.deepEqual(told, ready);
    }
    const restored = volumeSpec('back', { source: { type: 'snapshot', id: first.id } });
    assert.equal((await volumes.create(call, restored)).source?.id, first.id);
    assert.equal(await readFile(join(base, 'v/back/file'), 'utf8'), 'content');
    // Without the note of it, the tags still lead there.
    await rm(join(base, '.switchboard/c/v1-s1.json'));
    assert.equal((await snapshots.get(call, first.id)).id, first.id);
    await snapshots.delete(call, first.id);
    assert.deepEqual(await bench.list(), []);
    assert.deepEqual(await readdir(join(base, '.switchboard/c')), []);
  },
);

test(
  'a promised backup is taken by the next process; what the last one left is never taken for it',
  real,
  async (t) => {
    const root = await makeFolder(t);
    const restic = held('restic', 'backup');
    const first = await resticBench(t, { root, run: restic.run, ...slow });
    const { base, call, volumes } = first;
    await volumes.create(call, volumeSpec('v1'));
    await first.restic('init');
    const pending = await first.snapshots.create(call, snapshotSpec('s1', 'v1'));
    await restic.started(1);
    // A backup that was made, but whose process did not live to see whether it is whole.
    const tags = 'source=democratic-csi,csi_volume_id=v1,csi_snapshot_name=s1';
    await first.restic('backup', '--host', 'test-node1', '--tag', tags, join(base, 'v/v1'));
    await writeFile(join(base, 'v/v1/file'), 'content');
    await first.driver.close();
    const next = await resticBench(t, { root });
    assert.deepEqual((await next.snapshots.list(call, {}, {})).entries, [pending]);
    await next.driver.idle?.();
    const ready = await next.snapshots.get(call, pending.id);
    assert.deepEqual(ready, { ...pending, readyToUse: true });
    assert.equal((await next.list()).length, 1);
    await volumes.create(call, volumeSpec('back', { source: { type: 'snapshot', id: pending.id } }));
    assert.equal(await readFile(join(base, 'v/back/file'), 'utf8'), 'content');
  },
);

test('removing a snapshot whose backup runs ends the backup', real, async (t) => {
  const restic = held('restic', 'backup');
  const bench = await resticBench(t, { run: restic.run, ...slow });
  const { base, call, volumes, snapshots, driver } = bench;
  await volumes.create(call, volumeSpec('v1'));
  await bench.restic('init');
  const { id } = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  await restic.started(1);
  await snapshots.delete(call, id);
  assert.deepEqual(driver.background?.(), []);
  assert.deepEqual((await snapshots.list(call, {}, {})).entries, []);
  await assert.rejects(snapshots.get(call, id), failure('NOT_FOUND'));
  assert.deepEqual(await readdir(join(base, '.switchboard/c')), []);
  await volumes.delete(call, 'v1');
});

test('a backup waits for a repository that is locked', real, async (t) => {
  const root = await makeFolder(t);
  const script = join(root, 'restic');
  const complaint = 'unable to create lock in backend: repository is already locked exclusively by PID 1 on x';
  const locked = `[ -e ${root}/was ] || { touch ${root}/was; echo '${complaint}' >&2; exit 1; }`;
  await writeFile(script, `#!/bin/sh\ncase "$1" in backup) ${locked};; esac\nexec restic "$@"\n`, { mode: 0o755 });
  const { call, volumes, snapshots } = await resticBench(t, { root, run: createRunner({ paths: { restic: script } }) });
  await volumes.create(call, volumeSpec('v1'));
  assert.equal((await snapshots.create(call, snapshotSpec('s1', 'v1'))).readyToUse, true);
});
