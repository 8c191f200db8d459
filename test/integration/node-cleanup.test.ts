/** `switchboard node cleanup`, on volumes that are really attached. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { type CleanupOptions, cleanup } from '../../src/cli/node/cleanup.ts';
import type { Shell } from '../../src/cli/shell.ts';
import { readMountTable } from '../../src/node/mount-table.ts';
import type { NodePlane } from '../../src/node/node-plane.ts';
import { makePlane } from '../../src/node/plane.ts';
import { takeCleanupTurn } from '../../src/node/records/cleanup-turn.ts';
import { assertGone, attachers, type LoopBench, loopBench, volumeFile } from './node-records-support.ts';
import { enterMountNamespace, host } from './node-support.ts';

enterMountNamespace(import.meta.url);

const dayMs = 86_400_000;

/** Records are a day old: nobody is just staging those volumes. */
const old = { records: { now: () => Date.now() - dayMs, bootId: async () => 'boot-1' } };

interface Cleaned {
  readonly code: number;
  readonly out: string;
  readonly asked: readonly string[];
}

interface Report {
  readonly leftovers: readonly {
    readonly volume?: string;
    readonly kind: string;
    readonly outcome: string;
    readonly problem?: string;
  }[];
}

function planeOf(b: LoopBench, more: Partial<Parameters<typeof makePlane>[0]> = {}): NodePlane {
  const records = { bootId: async () => 'boot-1' };
  return makePlane({ run: createRunner(), stateDirectory: b.state, attachers, records, ...more });
}

/** `answer` undefined: nobody can be asked. */
async function clean(plane: NodePlane, options: CleanupOptions, answer?: string): Promise<Cleaned> {
  let out = '';
  const asked: string[] = [];
  const shell: Shell = {
    env: {},
    out: (text) => {
      out += text;
    },
    err: () => {},
    outIsTerminal: false,
    errIsTerminal: false,
    columns: 100,
    now: Date.now,
    ask:
      answer === undefined
        ? undefined
        : async (question) => {
            asked.push(question);
            return answer;
          },
  };
  const code = await cleanup(plane, options, shell);
  return { code, out, asked };
}

async function report(plane: NodePlane, options: CleanupOptions = { yes: true }) {
  const { code, out } = await clean(plane, { ...options, json: true });
  return { code, leftovers: (JSON.parse(out) as Report).leftovers };
}

/** Attached and remembered, but not mounted: as after a crash in the middle of unstaging. */
async function leaveBehind(b: LoopBench): Promise<void> {
  await b.stage();
  host('umount', b.path('stage'));
}

test('what is left over is shown, asked about, detached and forgotten', async (t) => {
  const b = await loopBench(t, { ...old, connection: 'nas' });
  const plane = planeOf(b);
  const nothing = await clean(plane, {});
  assert.deepEqual([nothing.code, nothing.out], [0, `Nothing is left over in ${b.state}/staged\n`]);
  await leaveBehind(b);

  const declined = await clean(plane, {}, 'n');
  assert.deepEqual([declined.code, declined.asked, b.devices().length], [1, ['Detach and forget it? [y/N] '], 1]);
  assert.match(
    declined.out,
    /v:nas\/v1\n +\S+\/stage \(loop, file \S+\/volume\), staged \S+Z: nothing is mounted there\n/,
  );

  const accepted = await clean(plane, {}, 'Yes');
  assert.equal(accepted.code, 0);
  assert.match(accepted.out, /^removed {2}v:nas\/v1$/m);
  await assertGone(b);
});

test('scripts say --yes; where nobody can be asked nothing is removed without', async (t) => {
  const b = await loopBench(t, old);
  const plane = planeOf(b);
  await leaveBehind(b);
  for (const options of [{}, { json: true }]) {
    await assert.rejects(clean(plane, options), { message: /nobody can be asked here, and nothing was removed/ });
  }
  assert.equal((await clean(plane, { dryRun: true })).code, 0);
  assert.equal(b.devices().length, 1);
  const { code, leftovers } = await report(plane);
  assert.equal(code, 0);
  assert.deepEqual(
    leftovers.map(({ volume, kind, outcome }) => [volume, kind, outcome]),
    [['v1', 'not mounted', 'removed']],
  );
  await assertGone(b);
  assert.deepEqual(await report(plane), { code: 0, leftovers: [] });
});

test('what is staged and published is not left over', async (t) => {
  const b = await loopBench(t, old);
  await b.stage();
  await b.publish('t');
  assert.deepEqual(await report(planeOf(b)), { code: 0, leftovers: [] });
  // Not even after a reboot that a restored snapshot of the state directory only seems to tell of.
  assert.deepEqual(await report(planeOf(b, { records: { bootId: async () => 'boot-2' } })), { code: 0, leftovers: [] });
  assert.deepEqual(await b.mounts(), ['stage', 't']);
});

test('a volume that is mounted elsewhere stays attached, and the exit code says so', async (t) => {
  const b = await loopBench(t, old);
  await b.stage();
  await b.publish('t');
  host('umount', b.path('stage'));
  const { code, leftovers } = await report(planeOf(b));
  assert.equal(code, 1);
  assert.deepEqual([leftovers[0]?.outcome, b.devices().length], ['failed', 1]);
  assert.match(leftovers[0]?.problem ?? '', /loop\d+ is still in use by the mount at \S+\/t /);
  await b.unpublish('t');
  assert.equal((await report(planeOf(b))).code, 0);
  await assertGone(b);
});

test('a volume that may be being staged at this moment is left alone', async (t) => {
  const fresh = await loopBench(t, { records: { bootId: async () => 'boot-1' } });
  await leaveBehind(fresh);
  assert.deepEqual(await report(planeOf(fresh)), { code: 0, leftovers: [] });
  assert.equal(fresh.devices().length, 1);
  // Not when the machine was started anew since.
  const { leftovers } = await report(planeOf(fresh, { records: { bootId: async () => 'boot-2' } }));
  assert.deepEqual([leftovers.length, leftovers[0]?.outcome], [1, 'removed']);
  await assertGone(fresh);
});

test('what is staged again while the question is asked is left alone', async (t) => {
  const b = await loopBench(t, old);
  await leaveBehind(b);
  const plane = planeOf(b);
  let out = '';
  const shell: Shell = {
    ...{ env: {}, err: () => {}, outIsTerminal: true, errIsTerminal: true, columns: 100, now: Date.now },
    out: (text) => {
      out += text;
    },
    ask: async () => {
      await b.stage();
      return 'y';
    },
  };
  assert.equal(await cleanup(plane, {}, shell), 1);
  assert.match(out, /FAILED {3}v1: it has changed since it was listed/);
  assert.deepEqual([await b.mounts(), b.devices().length], [['stage'], 1]);
});

test('one cleanup at a time', async (t) => {
  const b = await loopBench(t, old);
  await leaveBehind(b);
  const giveUp = await takeCleanupTurn(join(b.state, 'staged'));
  await assert.rejects(clean(planeOf(b), { yes: true }), { code: 'FAILED_PRECONDITION', message: /another/ });
  await giveUp();
  assert.equal((await clean(planeOf(b), { yes: true })).code, 0);
  await assertGone(b);
});

test('a record that nobody can read is removed, and only that', async (t) => {
  const b = await loopBench(t, old);
  await b.stage();
  await writeFile(await b.recordFile(), '{');
  const { code, out } = await clean(planeOf(b), { yes: true });
  assert.equal(code, 0);
  assert.match(out, /it is damaged; only the file is removed/);
  assert.deepEqual([await readdir(join(b.state, 'staged')), b.devices().length, await b.mounts()], [[], 1, ['stage']]);
  // It is known by its device now.
  await b.unstage();
  await assertGone(b);
});

test('what nothing here can detach is kept with its record', async (t) => {
  const b = await loopBench(t, old);
  await leaveBehind(b);
  const { code, leftovers } = await report(planeOf(b, { attachers: {} }));
  assert.equal(code, 1);
  assert.match(leftovers[0]?.problem ?? '', /there is no "loop"/);
  await readFile(await b.recordFile());
});

test('a dead mount is taken away, but not while it is published', async (t) => {
  const b = await loopBench(t, old);
  const context = { node_attach_driver: 'hostpath', path: b.path('gone') };
  await mkdir(b.path('gone'));
  await b.stage({ context });
  await b.publish('t', { context });
  await rm(b.path('gone'), { recursive: true });
  const { code, leftovers } = await report(planeOf(b));
  assert.deepEqual([code, leftovers[0]?.kind, leftovers[0]?.outcome], [1, 'dead', 'failed']);
  assert.match(leftovers[0]?.problem ?? '', /it is published at \S+\/t/);
  assert.deepEqual(await b.mounts(), ['stage', 't']);
  await b.unpublish('t');
  assert.equal((await report(planeOf(b))).code, 0);
  await assertGone(b);
});

test('many leftovers, of which some cannot go', async (t) => {
  const b = await loopBench(t, old);
  const others = await Promise.all(Array.from({ length: 3 }, () => volumeFile(t)));
  for (const [index, { file }] of others.entries()) {
    await b.stage({
      volumeId: `o${index}`,
      stagingPath: b.path(`o${index}`),
      context: { node_attach_driver: 'loop', file },
    });
  }
  await mkdir(b.path('keep'));
  host('mount', '--bind', b.path('o1'), b.path('keep'));
  for (const index of others.keys()) host('umount', b.path(`o${index}`));
  const { code, leftovers } = await report(planeOf(b));
  const outcomes = leftovers.map(({ volume, outcome }) => `${volume} ${outcome}`).sort();
  assert.deepEqual([code, outcomes], [1, ['o0 removed', 'o1 failed', 'o2 removed']]);
  assert.deepEqual(
    others.map(({ devices }) => devices().length),
    [0, 1, 0],
  );
  host('umount', b.path('keep'));
  assert.equal((await report(planeOf(b))).code, 0);
});

const noFuse = !existsSync('/dev/fuse') && 'there is no /dev/fuse';

/** A file system whose process is there and says nothing. */
function mountSilent(t: TestContext, place: string): void {
  const fuse = openSync('/dev/fuse', 'r+');
  const options = `fd=3,rootmode=40000,user_id=0,group_id=0`;
  const { status } = spawnSync('mount', ['-i', '-t', 'fuse.silent', '-o', options, `silent-${randomUUID()}`, place], {
    stdio: ['ignore', 'ignore', 'inherit', fuse],
  });
  t.after(() => {
    spawnSync('umount', ['-l', place]);
    closeSync(fuse);
  });
  assert.equal(status, 0);
}

test('a server that does not answer hinders nobody: what cannot be judged is left, and the exit code says so', {
  skip: noFuse,
}, async (t) => {
  const b = await loopBench(t, old);
  const context = { node_attach_driver: 'hostpath', path: b.path('vol') };
  await b.stage({ volumeId: 'silent', stagingPath: b.path('silent'), context });
  host('umount', b.path('silent'));
  mountSilent(t, b.path('silent'));
  await leaveBehind(b);
  const plane = planeOf(b, { limits: { ...defaultTimeLimits, mount: 3000 } });

  const shown = await clean(plane, {}, 'n');
  assert.deepEqual([shown.code, shown.asked], [1, ['Detach and forget it? [y/N] ']]);
  assert.match(shown.out, /^ {2}silent\n.*: it cannot be told whether it is in use, and it is left: .*not answer/m);

  const { code, leftovers } = await report(plane);
  const outcomes = leftovers.map(({ volume, kind, outcome }) => `${volume}: ${kind}, ${outcome}`).sort();
  assert.deepEqual([code, outcomes], [1, ['silent: unknown, left', 'v1: not mounted, removed']]);
  assert.deepEqual([b.devices(), await b.mounts()], [[], ['silent']]);
  // With nothing else to do, there is nothing to ask.
  assert.deepEqual([(await clean(plane, {})).code, (await clean(plane, { dryRun: true })).code], [1, 0]);

  host('umount', '-l', b.path('silent'));
  assert.equal((await report(plane)).code, 0);
  await assertGone(b);
});

const main = join(import.meta.dirname, '../../src/main.ts');

async function switchboard(_t: TestContext, state: string, ...args: string[]) {
  const options = { env: { PATH: process.env.PATH, SWITCHBOARD_STATE_DIR: state } };
  const result = promisify(execFile)(process.execPath, ['--no-warnings', main, ...args], options);
  return await result.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

test('the commands: doctor tells of it, node cleanup removes it, and neither shows anything then', async (t) => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'node-cleanup-')));
  t.after(() => rm(root, { recursive: true }));
  const b = await loopBench(t, { ...old, stateDirectory: join(root, 'state') });
  const context = { node_attach_driver: 'hostpath', path: b.path('vol') };
  await b.stage({ context });
  const staged = join(root, 'state/staged');
  const [name = ''] = await readdir(staged);
  const told = async () => {
    const { stdout } = await switchboard(t, join(root, 'state'), 'doctor', '--json');
    const { findings } = JSON.parse(stdout) as { findings: { name: string; state: string; detail: string }[] };
    return findings
      .filter((one) => /staged volumes|unreadable record/.test(one.name))
      .map((one) => `${one.state} ${one.detail}`);
  };
  assert.deepEqual(await told(), ['ok 1 remembered: all mounted']);
  await copyFile(
    join(staged, name),
    join(
      staged,
      name.replace(/^./, (digit) => (digit === 'a' ? 'b' : 'a')),
    ),
  );
  assert.match((await told()).join(), /^warning \S+\.json: its name is not that of what it tells of\./);
  host('umount', b.path('stage'));
  assert.match((await told()).join(), /note 1 remembered that are not mounted any more; nothing of them is attached/);

  const refused = await switchboard(t, join(root, 'state'), 'node', 'cleanup');
  assert.deepEqual([refused.code, (await readdir(staged)).length], [2, 2]);
  assert.match(refused.stderr, /nobody can be asked here, and nothing was removed\nAdd --yes/);
  const done = await switchboard(t, join(root, 'state'), 'node', 'cleanup', '--yes');
  assert.deepEqual(
    [done.code, await readdir(staged), (await readMountTable()).at(b.path('stage'))],
    [0, [], undefined],
  );
  assert.deepEqual(await told(), []);
});
