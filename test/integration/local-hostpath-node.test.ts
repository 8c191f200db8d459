import assert from 'node:assert/strict';
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Bench } from './local-hostpath-support.ts';
import { contents, failure, makeBench, makeFolder, sh, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';

const _gib = 2 ** 30;

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
