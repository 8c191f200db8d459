/** Mounts of servers that die or hang; a FUSE daemon is the server. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import type { MakeAttacher } from '../../src/node/attachers/attacher.ts';
import { readMountTable } from '../../src/node/mount-table.ts';
import { type Bench, bench, call, enterMountNamespace, mountCapability } from './node-support.ts';

enterMountNamespace(import.meta.url);

const skip = spawnSync('bindfs', ['--version']).error ? 'bindfs is not installed' : false;

/** Shares a folder by a daemon of its own, as `share` names it in the context. */
const share: MakeAttacher = () => ({
  attach: async (_call, { context }) => ({
    type: 'mount',
    source: context.share ?? '',
    fsType: 'fuse.bindfs',
    options: ['allow_other'],
  }),
});

async function shareBench(t: TestContext): Promise<Bench & { daemons(): Promise<number[]> }> {
  const folder = await bench(t);
  await mkdir(folder.path('share'));
  await writeFile(folder.path('share/data'), 'precious');
  const source = folder.path('share');
  const b = await bench(t, {
    context: { node_attach_driver: 'share', share: source },
    attachers: { share },
    limits: { ...defaultTimeLimits, mount: 400 },
    runner: { killGraceMs: 50 },
  });
  const daemons = () => daemonsOf(source);
  t.after(async () => {
    for (const pid of await daemons()) process.kill(pid, 'SIGKILL');
  });
  return { ...b, daemons };
}

async function daemonsOf(source: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')));
  return pids.filter((_, index) => lines[index]?.startsWith(`bindfs\0${source}\0`)).map(Number);
}

async function kill(b: { daemons(): Promise<number[]> }): Promise<void> {
  for (const pid of await b.daemons()) process.kill(pid, 'SIGKILL');
  while ((await b.daemons()).length > 0) await setImmediate();
}

const statsOf = (b: Bench, name: string) => b.node.stats(call, { volumeId: 'v1', volumePath: b.path(name) });

test('a share is mounted once, bound to its targets, and looked at by children only', { skip }, async (t) => {
  const b = await shareBench(t);
  for (let round = 0; round < 2; round++) {
    await b.stage();
    await b.publish('w');
    await b.publish('r', { readonly: true });
  }
  assert.equal((await b.daemons()).length, 1);
  assert.equal(await readFile(b.path('w/data'), 'utf8'), 'precious');
  await assert.rejects(writeFile(b.path('r/x'), ''), { code: 'EROFS' });
  b.forget();
  const { usage, condition } = await statsOf(b, 'w');
  assert.equal(condition?.abnormal, false);
  assert.deepEqual(
    usage.map((one) => one.unit),
    ['BYTES', 'INODES'],
  );
  assert.ok(b.commands.length > 0 && b.commands.every((line) => line.startsWith('stat ')), b.commands.join('\n'));
  assert.deepEqual(await b.node.expand(call, { volumeId: 'v1', volumePath: b.path('w'), capacity: {} }), {});
  for (const name of ['w', 'r']) await b.unpublish(name);
  await b.unstage();
  assert.deepEqual(await b.mounts(), []);
});

test('a share is mounted at the target when it is not staged', { skip }, async (t) => {
  const b = await shareBench(t);
  const direct = { stagingPath: undefined, readonly: true };
  await b.publish('t', direct);
  await b.publish('t', direct);
  await assert.rejects(b.publish('t', { stagingPath: undefined }), { code: 'ALREADY_EXISTS' });
  await assert.rejects(writeFile(b.path('t/x'), ''), { code: 'EROFS' });
  await b.unpublish('t');
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('a share has no block device and no other file system', { skip }, async (t) => {
  const b = await shareBench(t);
  await assert.rejects(b.stage({ capability: { type: 'block', mode: 'UNKNOWN' } }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(b.stage({ capability: { ...mountCapability, fsType: 'ext4' } }), { code: 'INVALID_ARGUMENT' });
});

test('a dead server: its mounts are told, replaced and removed', { skip }, async (t) => {
  const b = await shareBench(t);
  await b.stage();
  await b.publish('t');
  await b.publish('u');
  await kill(b);
  const { usage, condition } = await statsOf(b, 't');
  assert.deepEqual(usage, []);
  assert.equal(condition?.abnormal, true);
  assert.match(condition?.message ?? '', /out of reach/);
  await assert.rejects(b.publish('t'), { code: 'FAILED_PRECONDITION', message: /dead: .* out of reach/ });

  await b.stage();
  await b.publish('t');
  assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');
  assert.equal((await readMountTable()).stackAt(b.path('t')).length, 1);
  await b.unpublish('u');
  assert.deepEqual(await b.mounts(), ['stage', 't']);
  await kill(b);
  await b.unpublish('t');
  await b.unstage();
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('a server that hangs: every call ends, and unpublishing succeeds', { skip }, async (t) => {
  const b = await shareBench(t);
  await b.stage();
  await b.publish('t');
  for (const pid of await b.daemons()) process.kill(pid, 'SIGSTOP');
  const { condition } = await statsOf(b, 't');
  assert.equal(condition?.abnormal, true);
  assert.match(condition?.message ?? '', /does not answer/);
  await assert.rejects(b.publish('t'), { code: 'UNAVAILABLE', message: /does not answer/ });
  await b.unpublish('t');
  await b.unstage();
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(await readdir(b.root), ['vol']);
});

test('a caller who leaves while a server hangs is answered at once', { skip }, async (t) => {
  const b = await shareBench(t);
  await b.stage();
  for (const pid of await b.daemons()) process.kill(pid, 'SIGSTOP');
  const controller = new AbortController();
  const context = { ...call, signal: controller.signal };
  const stats = b.node.stats(context, { volumeId: 'v1', volumePath: b.path('stage') });
  controller.abort();
  await assert.rejects(stats, { code: 'CANCELLED' });
});
