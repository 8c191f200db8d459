/** What a node remembers of the volumes that it attached, and what it does when it has forgotten. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import type { StageRequest, WholeNodeOperations } from '../../src/core/driver.ts';
import { createLogger } from '../../src/core/logger.ts';
import type { MakeAttacher } from '../../src/node/attachers/attacher.ts';
import { takeCleanupTurn } from '../../src/node/records/cleanup-turn.ts';
import type { StagedRecord } from '../../src/node/records/record.ts';
import { loopAttacher } from './loop-attacher.ts';
import { assertGone, attachers, type LoopBench, loopBench, volumeFile } from './node-records-support.ts';
import { bench, blockCapability, call, enterMountNamespace, host, mountCapability } from './node-support.ts';

enterMountNamespace(import.meta.url);

function listening(): { readonly call: CallContext; readonly lines: string[] } {
  const lines: string[] = [];
  return {
    call: detachedContext(createLogger({ level: 'info', format: 'json', write: (line) => lines.push(line) })),
    lines,
  };
}

test('a record says what is attached, for its owner alone and without secrets', async (t) => {
  const b = await loopBench(t, { connection: 'nas', records: { now: () => 1234, bootId: async () => 'boot-1' } });
  const secrets = { password: 'hush' };
  const request = { volumeId: 'v1', stagingPath: b.path('stage'), capability: mountCapability, publishContext: {} };
  const context = { node_attach_driver: 'loop', file: b.file };
  await b.node.stage({ ...call, secrets }, { ...request, context });
  const file = await b.recordFile();
  const text = await readFile(file, 'utf8');
  const { owner, ...record } = JSON.parse(text) as StagedRecord;
  assert.deepEqual(record, {
    version: 1,
    volumeId: 'v1',
    connection: 'nas',
    attacher: 'loop',
    identity: { file: b.file },
    place: b.path('stage'),
    bootId: 'boot-1',
    at: 1234,
  });
  assert.match(owner, new RegExp(`\\.${process.pid}\\.`));
  assert.doesNotMatch(text, /hush/);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await b.unstage();
  await assertGone(b);
});

test('a volume is taken away by what its record tells, whichever way its path is written', async (t) => {
  const b = await loopBench(t);
  await b.stage();
  await symlink(b.root, `${b.root}.link`);
  t.after(() => rm(`${b.root}.link`));
  await b.unstage(`${b.root}//stage/`);
  await assertGone(b);
});

test('without a record the device that is mounted tells what it is', async (t) => {
  const b = await loopBench(t);
  for (const request of [{}, { capability: blockCapability }]) {
    await b.stage(request);
    await rm(b.state, { recursive: true });
    await b.unstage();
    await assertGone(b);
  }
});

test('nothing is detached for a record that nobody can read', async (t) => {
  const b = await loopBench(t);
  for (const spoilt of ['', '{"version":1', '{"version":2,"attacher":"loop"}', 'null', '[]', '{"version":1}']) {
    await b.stage();
    const file = await b.recordFile();
    await writeFile(file, spoilt);
    const { call: heard, lines } = listening();
    await b.node.unstage(heard, { volumeId: 'v1', stagingPath: b.path('stage') });
    assert.deepEqual(await b.mounts(), []);
    assert.equal(b.devices().length, 1, spoilt);
    assert.match(lines.join(''), /nothing was detached.*(damaged|later version)/);
    assert.equal(await readFile(file, 'utf8'), spoilt, 'it is kept for whoever looks');
    await b.stage();
    await b.unstage();
    await assertGone(b);
  }
});

test('a record that was copied to another place’s name is no record of that place', async (t) => {
  const b = await loopBench(t);
  const elsewhere = b.path('elsewhere');
  await b.stage({ stagingPath: elsewhere });
  const other = await b.recordFile();
  const text = await readFile(other, 'utf8');
  await b.unstage(elsewhere);
  await b.stage();
  await writeFile(await b.recordFile(), text);
  await b.unstage();
  assert.equal(b.devices().length, 1);
});

test('after a reboot nothing is there but the record', async (t) => {
  let boot = 'boot-1';
  const b = await loopBench(t, { records: { bootId: async () => boot } });
  const reboot = () => {
    host('umount', b.path('stage'));
    for (const device of b.devices()) host('losetup', '-d', device);
    boot = `${boot}+`;
  };
  await b.stage();
  await writeFile(b.path('stage/data'), 'precious');
  reboot();
  await b.unstage();
  await assertGone(b);
  await b.stage();
  reboot();
  await b.stage();
  assert.equal((await b.records())[0]?.bootId, 'boot-1++');
  assert.equal(await readFile(b.path('stage/data'), 'utf8'), 'precious');
  await b.unstage();
  await assertGone(b);
});

test('what is attached but not mounted is detached, even when its folder is gone', async (t) => {
  const b = await loopBench(t);
  const stagingPath = b.path('folder/stage');
  await b.stage({ stagingPath });
  host('umount', stagingPath);
  await rm(b.path('folder'), { recursive: true });
  await b.unstage(stagingPath);
  await assertGone(b);
});

for (const operation of ['stage', 'unstage'] as const) {
  for (const then of ['stage', 'unstage'] as const) {
    test(`killed at any step of ${operation}: ${then} gets to the right state`, async (t) => {
      const b = await loopBench(t);
      await b.stage();
      await writeFile(b.path('stage/data'), 'precious');
      for (let killAt = 1; ; killAt++) {
        if (operation === 'stage') await b.unstage();
        const task = { state: b.state, file: b.file, stagingPath: b.path('stage'), operation, killAt };
        const child = spawn(
          process.execPath,
          ['--no-warnings', join(import.meta.dirname, 'node-records-child.ts'), JSON.stringify(task)],
          { stdio: 'inherit' },
        );
        const [code, signal] = await once(child, 'exit');
        if (signal !== 'SIGKILL') {
          assert.equal(code, 0);
          assert.ok(killAt > 6, `${killAt - 1} steps`);
          break;
        }
        if (then === 'unstage') {
          await b.unstage();
          await assertGone(b);
        }
        await b.stage();
        assert.equal(await readFile(b.path('stage/data'), 'utf8'), 'precious', `killed before step ${killAt}`);
        assert.deepEqual([b.devices().length, (await b.records()).length, await b.mounts()], [1, 1, ['stage']]);
      }
      await b.unstage();
      await assertGone(b);
    });
  }
}

test('an attachment that fails half-way is cleaned up by unstage', async (t) => {
  const failing: MakeAttacher = (tools) => {
    const real = loopAttacher(tools);
    return {
      ...real,
      async attach(context, request) {
        await real.attach(context, request);
        throw new Error('half-way');
      },
    };
  };
  const b = await loopBench(t, { attachers: { loop: failing } });
  await assert.rejects(b.stage(), /half-way/);
  assert.deepEqual([b.devices().length, (await b.records()).length], [1, 1]);
  await b.unstage();
  await assertGone(b);
});

test('a request that can never work leaves no record', async (t) => {
  const b = await loopBench(t);
  await assert.rejects(b.stage({ context: { node_attach_driver: 'loop' } }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(b.stage({ context: { node_attach_driver: 'hostpath' } }), { code: 'INVALID_ARGUMENT' });
  const directory = { node_attach_driver: 'hostpath', path: b.path('vol') };
  await assert.rejects(b.stage({ context: directory, capability: blockCapability }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(b.publish('t', { context: directory, capability: blockCapability, stagingPath: undefined }), {
    code: 'INVALID_ARGUMENT',
  });
  await assertGone(b);
});

test('what has nothing to detach leaves no record when it cannot be mounted, and what has is detached by its record', async (t) => {
  const b = await loopBench(t, { runner: { paths: { mount: '/bin/false' } } });
  const directory = { node_attach_driver: 'hostpath', path: b.path('vol') };
  for (const context of [directory, { node_attach_driver: 'loop', file: b.file }]) {
    await assert.rejects(b.stage({ context }), { code: 'INTERNAL' });
    await assert.rejects(b.publish('t', { context, stagingPath: undefined }), { code: 'INTERNAL' });
    const kept = context === directory ? [] : [b.path('stage'), b.path('t')];
    assert.deepEqual((await b.records()).map(({ place }) => place).sort(), kept);
  }
  await b.unpublish('t');
  assert.equal(b.devices().length, 1);
  await b.unstage();
  await assertGone(b);
});

test('a volume at two staging paths is detached with the second', async (t) => {
  const b = await loopBench(t);
  const [one, two] = [b.path('one'), b.path('two')];
  await b.stage({ stagingPath: one });
  await b.stage({ stagingPath: two, capability: { ...mountCapability, mode: 'SINGLE_NODE_READER_ONLY' } });
  await writeFile(join(one, 'data'), 'precious');
  await b.publish('t', { stagingPath: two });
  await b.unstage(one);
  assert.deepEqual([b.devices().length, (await b.records()).map(({ place }) => place)], [1, [two]]);
  assert.equal(await readFile(b.path('t/data'), 'utf8'), 'precious');
  await b.unpublish('t');
  await b.unstage(two);
  await assertGone(b);
});

test('two staging paths that are given up at once, again and again', async (t) => {
  const b = await loopBench(t);
  for (let round = 0; round < 5; round++) {
    const paths = ['a', 'b', 'c'].map(b.path);
    await Promise.all(paths.map((stagingPath) => b.stage({ stagingPath })));
    assert.equal(b.devices().length, 1);
    await Promise.all(paths.map((path) => b.unstage(path)));
    await assertGone(b);
  }
});

test('staging at one path while another is given up keeps the volume attached', async (t) => {
  const b = await loopBench(t);
  let [old, fresh] = ['a', 'b'].map(b.path) as [string, string];
  await b.stage({ stagingPath: old });
  for (let round = 0; round < 8; round++) {
    await Promise.all([b.stage({ stagingPath: fresh }), b.unstage(old)]);
    await writeFile(join(fresh, 'data'), `${round}`);
    assert.deepEqual([b.devices().length, (await b.records()).length], [1, 1]);
    [old, fresh] = [fresh, old];
  }
  await b.unstage(old);
  await assertGone(b);
});

test('many volumes at once', async (t) => {
  const b = await loopBench(t);
  const volumes = await Promise.all(Array.from({ length: 8 }, () => volumeFile(t)));
  const stage = ({ file }: { file: string }, index: number) =>
    b.stage({ stagingPath: b.path(`s${index}`), context: { node_attach_driver: 'loop', file } });
  await Promise.all(volumes.map(stage));
  assert.equal((await b.records()).length, volumes.length);
  await Promise.all(volumes.map((_volume, index) => b.unstage(b.path(`s${index}`))));
  for (const { devices } of volumes) assert.deepEqual(devices(), []);
  await assertGone(b);
});

test('a directory on a disk that the host attached is never a reason to detach the disk', async (t) => {
  const b = await loopBench(t);
  host('mkfs.ext4', '-q', b.file);
  const device = host('losetup', '--find', '--show', b.file).trim();
  await mkdir(b.path('disk'));
  host('mount', device, b.path('disk'));
  await mkdir(b.path('disk/v'));
  for (const path of [b.path('disk/v'), b.path('disk')]) {
    for (const lost of [false, true]) {
      await b.stage({ context: { node_attach_driver: 'hostpath', path } });
      if (lost) await rm(b.state, { recursive: true });
      await b.unstage();
      assert.deepEqual(b.devices(), [device], `${path}, ${lost ? 'without a' : 'with its'} record`);
      assert.deepEqual(await b.mounts(), ['disk']);
    }
  }
  // What was made from it afterwards is somebody's who has not been told.
  await b.stage({ context: { node_attach_driver: 'hostpath', path: b.path('disk') } });
  await rm(b.state, { recursive: true });
  await b.publish('target', { context: { node_attach_driver: 'hostpath', path: b.path('disk') } });
  await assert.rejects(b.unstage(), { code: 'FAILED_PRECONDITION', message: /still mounted at .*target/ });
  await b.unpublish('target');
  await b.unstage();
  assert.deepEqual(await b.mounts(), ['disk']);
  host('umount', b.path('disk'));
  // The disk itself, which nobody else uses.
  await b.stage({ context: { node_attach_driver: 'bind', path: device } });
  await b.unstage();
  assert.deepEqual(b.devices(), [device]);
});

test('a device that another mount namespace has mounted stays attached until it has not', async (t) => {
  const b = await loopBench(t);
  await b.stage();
  // Mounts are copied into the new namespace, and stay there while somebody is in them.
  const other = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', 'cd "$1" && echo ready && read _', 'sh', b.path('stage')],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  t.after(() => other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  const refused = {
    code: 'FAILED_PRECONDITION',
    message: /still in use by .* another mount namespace/,
  };
  await assert.rejects(b.unstage(), refused);
  assert.deepEqual([b.devices().length, (await b.records()).length, await b.mounts()], [1, 1, []]);
  other.stdin.end('\n');
  await once(other, 'exit');
  await b.unstage();
  await assertGone(b);
});

test('a device that the machine swaps to stays attached', async (t) => {
  const b = await loopBench(t);
  await b.stage({ capability: blockCapability });
  const [device = ''] = b.devices();
  await writeFile(b.path('swap'), '');
  host('mkswap', device);
  host('swapon', device);
  t.after(() => host('swapoff', '-a'));
  await assert.rejects(b.unstage(), { code: 'FAILED_PRECONDITION', message: /still in use by/ });
  assert.equal(b.devices().length, 1);
  host('swapoff', device);
  await rm(b.path('swap'));
  await b.unstage();
  await assertGone(b);
});

test('another volume at the same path: the one that is mounted there first has to go, the one that is not is taken away', async (t) => {
  const b = await loopBench(t);
  const other = await volumeFile(t);
  const context = { node_attach_driver: 'loop', file: other.file };
  await b.stage();
  await assert.rejects(b.stage({ context }), { code: 'FAILED_PRECONDITION', message: /occupied by the volume v1/ });
  assert.deepEqual(other.devices(), [], 'nothing was attached in vain');
  host('umount', b.path('stage'));
  await b.stage({ context });
  assert.deepEqual([b.devices(), other.devices().length], [[], 1]);
  assert.deepEqual(
    (await b.records()).map(({ identity }) => identity),
    [{ file: other.file }],
  );
  await b.unstage();
  assert.deepEqual(other.devices(), []);
  await assertGone(b);
});

test('a volume whose record has another form of identity is still the same', async (t) => {
  const renamed: MakeAttacher = (tools) => {
    const real = loopAttacher(tools);
    return {
      ...real,
      identityOf: ({ context }) => ({ name: context.file ?? '' }),
      identify: async (device) => {
        const found = await real.identify?.(device);
        return found?.file ? { name: found.file } : undefined;
      },
      detach: async (context, { name, file }) => real.detach?.(context, { file: name ?? file ?? '' }),
    };
  };
  const b = await loopBench(t);
  const later = await bench(t, { attachers: { loop: renamed }, stateDirectory: b.state });
  await b.stage();
  const context = { node_attach_driver: 'loop', file: b.file };
  const stage: StageRequest = {
    volumeId: 'v1',
    stagingPath: b.path('stage'),
    capability: mountCapability,
    context,
    publishContext: {},
  };
  await later.node.stage(call, stage);
  await later.node.unstage(call, stage);
  await assertGone(b);
});

test('a volume that is published without staging is detached when it is unpublished', async (t) => {
  const b = await loopBench(t);
  const direct = { stagingPath: undefined };
  await b.publish('t', direct);
  await b.publish('u', direct);
  await b.unpublish('t');
  assert.equal(b.devices().length, 1);
  await b.unpublish('u');
  await assertGone(b);
});

test('without a folder for records, volumes are staged and unstaged all the same, and it is said once', async (t) => {
  const state = await realpath(await mkdtemp(join(tmpdir(), 'node-full-')));
  host('mount', '-t', 'tmpfs', '-o', 'size=4k', 'none', state);
  t.after(async () => {
    host('umount', state);
    await rm(state, { recursive: true });
  });
  const b = await loopBench(t, { stateDirectory: state });
  await writeFile(join(state, 'full'), 'x'.repeat(4096));
  const { call: heard, lines } = listening();
  const request = (name: string) => ({ volumeId: 'v1', stagingPath: b.path(name) });
  const more = {
    capability: mountCapability,
    context: { node_attach_driver: 'loop', file: b.file },
    publishContext: {},
  };
  const warnings = () => lines.filter((line) => line.includes('no record of staged volumes can be kept'));
  for (const name of ['one', 'two']) {
    await b.node.stage(heard, { ...request(name), ...more });
    await b.node.unstage(heard, request(name));
    assert.deepEqual([b.devices(), await b.mounts(), warnings().length], [[], [], 1]);
  }
  assert.match(warnings()[0] ?? '', /ENOSPC/);
  await rm(join(state, 'full'));
  await b.node.stage(heard, { ...request('one'), ...more });
  assert.match(lines.at(-1) ?? '', /kept again/);
  assert.equal((await readdir(join(state, 'staged'))).length, 1);
  await b.node.unstage(heard, request('one'));
  assert.deepEqual(b.devices(), []);
});

test('without a state directory nothing is written', async (t) => {
  const b = await loopBench(t, { stateDirectory: undefined });
  await b.stage();
  await b.unstage();
  await assertGone(b);
});

test('staging waits for a cleanup that is at work, and not for one that was killed', async (t) => {
  const b = await loopBench(t);
  await b.stage();
  await b.unstage();
  const folder = join(b.state, 'staged');
  const giveUp = await takeCleanupTurn(folder);
  await assert.rejects(takeCleanupTurn(folder), { code: 'FAILED_PRECONDITION', message: /another .* at work/ });
  let staged: Promise<void> | undefined;
  const waits = new Promise<void>((resolve) => {
    const waitingFor: CallContext['waitingFor'] = (what, work) => {
      if (what.includes('cleanup')) resolve();
      return work();
    };
    staged = stageWith(b.node, { ...call, waitingFor }, b);
  });
  await waits;
  assert.deepEqual(b.devices(), [], 'nothing is attached meanwhile');
  for (const name of (await readdir(folder)).filter((one) => one.endsWith('.json'))) await rm(join(folder, name));
  await giveUp();
  await staged;
  assert.deepEqual([b.devices().length, (await b.records()).length], [1, 1]);
  await b.unstage();
  const dead = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `import { takeCleanupTurn } from ${JSON.stringify(join(import.meta.dirname, '../../src/node/records/cleanup-turn.ts'))};
     await takeCleanupTurn(${JSON.stringify(folder)}); process.kill(process.pid, 'SIGKILL');`,
  ]);
  await once(dead, 'exit');
  assert.deepEqual(await readdir(folder), ['cleanup.lock']);
  await b.stage();
  await b.unstage();
  await assertGone(b);
});

function stageWith(node: WholeNodeOperations, context: CallContext, b: LoopBench): Promise<void> {
  return node.stage(context, {
    volumeId: 'v1',
    stagingPath: b.path('stage'),
    capability: mountCapability,
    context: { node_attach_driver: 'loop', file: b.file },
    publishContext: {},
  });
}

test('a detach is told of the other volumes that the attacher has', async (t) => {
  const told: unknown[] = [];
  const telling: MakeAttacher = (tools) => {
    const real = loopAttacher(tools);
    return {
      ...real,
      detach: async (context, identity, others) => {
        told.push(await others?.());
        await real.detach?.(context, identity);
      },
    };
  };
  const b = await loopBench(t, { attachers: { ...attachers, loop: telling } });
  const other = await volumeFile(t);
  await b.stage();
  await b.stage({ stagingPath: b.path('other'), context: { node_attach_driver: 'loop', file: other.file } });
  await b.stage({ stagingPath: b.path('local'), context: { node_attach_driver: 'hostpath', path: b.path('vol') } });
  await b.unstage();
  await b.unstage(b.path('local'));
  await b.unstage(b.path('other'));
  assert.deepEqual(told, [[{ file: other.file }], []]);
  await assertGone(b);
});

test('remembering takes no commands: those that are run mount, unmount and attach', async (t) => {
  const b = await loopBench(t);
  const counted = async (work: () => Promise<unknown>) => {
    b.forget();
    await work();
    return b.commands.map((line) => line.split(' ')[0]).filter((program) => program !== 'losetup');
  };
  await b.stage();
  await b.unstage();
  // The file system is looked at before it is mounted, and its size after.
  assert.deepEqual(await counted(() => b.stage()), ['blkid', 'mount', 'od']);
  assert.deepEqual(await counted(() => b.publish('t')), ['mount']);
  assert.deepEqual(await counted(() => b.node.stats(call, { volumeId: 'v1', volumePath: b.path('t') })), []);
  assert.deepEqual(await counted(() => b.unpublish('t')), ['umount']);
  assert.deepEqual(await counted(() => b.unstage()), ['umount']);
});

test('what propagation shows elsewhere is the same mount and goes with it', async (t) => {
  const b = await loopBench(t);
  const [tree, elsewhere] = [b.path('tree'), b.path('elsewhere')];
  for (const path of [tree, elsewhere]) await mkdir(path);
  host('mount', '--bind', tree, tree);
  host('mount', '--make-shared', tree);
  host('mount', '--rbind', tree, elsewhere);
  const stagingPath = join(tree, 'stage');
  for (const capability of [mountCapability, blockCapability]) {
    await b.stage({ capability, stagingPath });
    await b.publish('tree/t', { capability, stagingPath });
    assert.equal((await b.mounts()).length, 6, 'everything is seen twice');
    await assert.rejects(b.unstage(stagingPath), { code: 'FAILED_PRECONDITION', message: /still mounted at \S+\/t;/ });
    await b.unpublish('tree/t');
    await b.unstage(stagingPath);
    assert.deepEqual([await b.mounts(), b.devices(), await b.records()], [['tree', 'elsewhere'], [], []]);
  }
});
