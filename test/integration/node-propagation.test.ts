import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { asidePlace } from '../../src/node/aside-place.ts';
import { type Mount, parseMountTable } from '../../src/node/mount-table.ts';
import {
  type Bench,
  type BenchOptions,
  bench,
  call,
  enterMountNamespace,
  host,
  loopDevice,
  mountCapability,
} from './node-support.ts';

enterMountNamespace(import.meta.url);

interface Shared extends Bench {
  /** What the other mount namespace has at a path below the folder. */
  seenAt(name: string): Promise<Mount | undefined>;
  /** What it has below `shared`. */
  seen(): Promise<readonly string[]>;
  /** Whether writing works there. */
  isWritableThere(name: string): boolean;
}

/** A folder whose part `shared` is one of a peer group, the other being in another mount namespace: of a host, as it were. */
async function sharedBench(t: TestContext, propagation: 'unchanged' | 'slave', options: BenchOptions): Promise<Shared> {
  const b = await bench(t, options);
  await mkdir(b.path('shared'));
  host('mount', '-t', 'tmpfs', '--make-shared', 'shared', b.path('shared'));
  const other = spawn('unshare', ['--mount', '--propagation', propagation, 'sh', '-c', 'echo; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  const table = async () => parseMountTable(await readFile(`/proc/${other.pid}/mountinfo`, 'utf8'));
  const inside = (...args: string[]) => spawnSync('nsenter', [`--mount=/proc/${other.pid}/ns/mnt`, ...args]);
  return {
    ...b,
    seenAt: async (name) => (await table()).at(b.path(name)),
    seen: async () =>
      (await table()).mounts.flatMap(({ mountPoint }) =>
        mountPoint.startsWith(`${b.path('shared')}/`) ? [mountPoint.slice(b.path('shared/').length)] : [],
      ),
    isWritableThere: (name) => inside('touch', b.path(name)).status === 0,
  };
}

const flags = (...mountFlags: string[]) => ({ capability: { ...mountCapability, mountFlags } });

/** A mount program that sets options of bind mounts afterwards, as util-linux before 2.39 does, whatever the machine's own. */
async function withOldMount(t: TestContext): Promise<BenchOptions> {
  const folder = await bench(t);
  const script = folder.path('old-mount');
  await writeFile(
    script,
    `#!/bin/sh
case "$1 $2" in
  --version*) echo 'mount from util-linux 2.38.1 (libmount 2.38.1: btrfs, verity)' ;;
  '-o bind,'*) mount --bind "$3" "$4" && exec mount -o "remount,$2" "$4" ;;
  *) exec mount "$@" ;;
esac
`,
  );
  await chmod(script, 0o755);
  return { runner: { paths: { mount: script } } };
}

for (const propagation of ['unchanged', 'slave'] as const) {
  for (const program of ['this machine', 'an old mount program'] as const) {
    const optionsOf = (t: TestContext) => (program === 'this machine' ? {} : withOldMount(t));

    test(`read-only is read-only in a namespace that is ${propagation}, with ${program}`, async (t) => {
      const b = await sharedBench(t, propagation, await optionsOf(t));
      await b.stage();
      await b.publish('shared/ro', { readonly: true });
      await b.publish('shared/rw');
      await b.publish('shared/flags', flags('nosuid', 'nodev', 'noexec'));
      for (let round = 0; round < 2; round++) {
        assert.ok((await b.seenAt('shared/ro'))?.options.includes('ro'));
        assert.equal(b.isWritableThere('shared/ro/x'), false);
        assert.equal(b.isWritableThere('shared/rw/x'), true);
        const options = (await b.seenAt('shared/flags'))?.options ?? [];
        for (const option of ['rw', 'nosuid', 'nodev', 'noexec']) assert.ok(options.includes(option), option);
        assert.deepEqual([...(await b.seen())].sort(), ['flags', 'ro', 'rw']);
        assert.deepEqual((await readdir(b.path('shared'))).sort(), ['flags', 'ro', 'rw']);
        b.forget();
        await b.publish('shared/ro', { readonly: true });
        await b.publish('shared/flags', flags('nosuid', 'nodev', 'noexec'));
        assert.deepEqual(b.commands, []);
      }
      for (const name of ['ro', 'rw', 'flags']) await b.unpublish(`shared/${name}`);
      assert.deepEqual(await b.seen(), []);
      assert.deepEqual(await readdir(b.path('shared')), []);
    });
  }
}

test('three commands where mounts are propagated, and one where not or where the options are there already', async (t) => {
  const b = await sharedBench(t, 'unchanged', await withOldMount(t));
  await b.stage();
  await b.publish('shared/first', { readonly: true });
  const commandsOf = async (work: () => Promise<void>) => {
    b.forget();
    await work();
    return b.commands.map((command) => command.split(' ')[0]);
  };
  const readonly = { readonly: true };
  assert.deepEqual(await commandsOf(() => b.publish('shared/ro', readonly)), ['mount', 'mount', 'umount']);
  assert.deepEqual(await commandsOf(() => b.publish('shared/rw')), ['mount']);
  assert.deepEqual(await commandsOf(() => b.publish('ro', readonly)), ['mount']);
  assert.deepEqual(await commandsOf(() => b.publish('rw')), ['mount']);
  assert.deepEqual(await commandsOf(() => b.unpublish('shared/ro')), ['umount']);
  const capability = { ...mountCapability, mode: 'MULTI_NODE_READER_ONLY' as const };
  await b.stage({ stagingPath: b.path('shared/stage'), capability });
  const staged = { stagingPath: b.path('shared/stage'), capability };
  assert.deepEqual(await commandsOf(() => b.publish('shared/staged', staged)), ['mount']);
  assert.equal(b.isWritableThere('shared/stage/x'), false);
  assert.equal(b.isWritableThere('shared/staged/x'), false);
});

/** Left aside by a process that was killed: after the folder was made, the mount, its options, or the showing of it. */
const crashes: Readonly<Record<string, (b: Bench) => Promise<void>>> = {
  'the folder': async () => {},
  'the mount': async (b) => void host('mount', '--bind', b.path('stage'), asidePlace(b.path('shared/t'))),
  'its options': async (b) => void host('mount', '-o', 'bind,ro', b.path('stage'), asidePlace(b.path('shared/t'))),
  'the mount at the target': async (b) => {
    host('mount', '-o', 'bind,ro', b.path('stage'), asidePlace(b.path('shared/t')));
    await mkdir(b.path('shared/t'));
    host('mount', '--bind', asidePlace(b.path('shared/t')), b.path('shared/t'));
  },
};

for (const [step, crash] of Object.entries(crashes)) {
  test(`what a crash after ${step} left is completed by the same call, or removed by unpublishing`, async (t) => {
    const b = await sharedBench(t, 'unchanged', {});
    await b.stage();
    for (const completed of [true, false]) {
      await mkdir(asidePlace(b.path('shared/t')));
      await crash(b);
      if (completed) {
        await b.publish('shared/t', { readonly: true });
        assert.deepEqual(await b.seen(), ['t']);
        assert.deepEqual(await readdir(b.path('shared')), ['t']);
        assert.equal(b.isWritableThere('shared/t/x'), false);
      }
      await b.unpublish('shared/t');
      assert.deepEqual(await b.seen(), []);
      assert.deepEqual(await readdir(b.path('shared')), []);
    }
    assert.deepEqual(await b.mounts(), ['shared', 'stage']);
  });
}

test('a mount program that leaves out read-only is corrected before anybody sees the target, or nothing is mounted', async (t) => {
  const helper = await bench(t);
  const script = helper.path('forgetful-mount');
  const forgetful = (remount: string) =>
    writeFile(script, `#!/bin/sh\ncase "$2" in remount*) ${remount};; *) exec mount --bind "$3" "$4";; esac\n`);
  await forgetful('exec mount "$@"');
  await chmod(script, 0o755);
  const b = await sharedBench(t, 'unchanged', { runner: { paths: { mount: script } } });
  await b.stage();
  await b.publish('shared/t', { readonly: true });
  assert.equal(b.isWritableThere('shared/t/x'), false);
  await forgetful('exit 0');
  await assert.rejects(b.publish('shared/u', { readonly: true }), { code: 'FAILED_PRECONDITION', message: /writable/ });
  assert.deepEqual(await b.seen(), ['t']);
  assert.deepEqual(await readdir(b.path('shared')), ['t']);
});

test('what is left aside for one target does not count as a publication of a single writer', async (t) => {
  const b = await sharedBench(t, 'unchanged', { settings: { mount: { mount_flags: ['nosuid'] } } });
  const single = { capability: { ...mountCapability, mode: 'SINGLE_NODE_SINGLE_WRITER' as const } };
  await b.stage(single);
  await mkdir(asidePlace(b.path('shared/t')));
  host('mount', '--bind', b.path('stage'), asidePlace(b.path('shared/t')));
  await b.publish('shared/u', single);
  await assert.rejects(b.publish('shared/t', single), { code: 'FAILED_PRECONDITION', message: /shared\/u already/ });
  await b.unpublish('shared/u');
  await b.publish('shared/t', single);
  assert.deepEqual(await b.seen(), ['t']);
});

test('a second mount of a device has its own options everywhere', async (t) => {
  const { device } = await loopDevice(t, 32 * 2 ** 20);
  host('mkfs.ext4', '-q', device);
  const b = await sharedBench(t, 'unchanged', {});
  await mkdir(b.path('disk'));
  host('mount', '-o', 'ro', device, b.path('disk'));
  const context = { node_attach_driver: 'hostpath', path: device };
  const unstaged = { stagingPath: undefined, context };
  await b.publish('shared/ro', { ...unstaged, readonly: true });
  await b.publish('shared/rw', unstaged);
  assert.equal(b.isWritableThere('shared/ro/x'), false);
  assert.equal(b.isWritableThere('shared/rw/x'), true);
  assert.deepEqual([...(await b.seen())].sort(), ['ro', 'rw']);
});

test('a block device is published read-only, on a file', async (t) => {
  const { device } = await loopDevice(t, 2 ** 20);
  const b = await sharedBench(t, 'unchanged', {});
  const context = { node_attach_driver: 'hostpath', path: device };
  const capability = { type: 'block', mode: 'SINGLE_NODE_READER_ONLY' } as const;
  await b.node.publish(call, {
    volumeId: 'v1',
    capability,
    context,
    publishContext: {},
    readonly: true,
    targetPath: b.path('shared/b'),
    stagingPath: undefined,
  });
  assert.ok(await b.seenAt('shared/b'));
  await assert.rejects(writeFile(b.path('shared/b'), 'x', { flag: 'r+' }), { code: 'EPERM' });
  await b.unpublish('shared/b');
  assert.deepEqual(await readdir(b.path('shared')), []);
});
