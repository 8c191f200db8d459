import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseMountTable } from '../../src/node/mount-table.ts';
import { requireSeenByDocker } from '../../src/node/seen-by-docker.ts';
import { aCall, world } from './docker-stand-in.ts';
import { failsWith } from './proxy-stand-ins.ts';

const root = '1 0 8:1 / / rw - ext4 /dev/sda rw';
const mounted = (point: string, from = '/vols/v/data', device = '8:1') =>
  `2 1 ${device} ${from} ${point} rw - ext4 /dev/sda rw`;
const here = '/data/docker/data/data';

interface Process {
  readonly comm: string;
  readonly namespace?: string;
  readonly mounts: readonly string[];
}

/** A /proc with these processes. `own`: this process's mount namespace. */
async function machine(t: TestContext, processes: readonly Process[], own = 'mnt:[1]') {
  const proc = await mkdtemp(join(tmpdir(), 'proc-'));
  t.after(() => rm(proc, { recursive: true }));
  const add = async (pid: string, { comm, namespace, mounts }: Process) => {
    await mkdir(join(proc, pid, 'ns'), { recursive: true });
    await writeFile(join(proc, pid, 'comm'), `${comm}\n`);
    await writeFile(join(proc, pid, 'mountinfo'), mounts.join('\n'));
    if (namespace) await symlink(namespace, join(proc, pid, 'ns/mnt'));
  };
  await add('self', { comm: 'switchboard', namespace: own, mounts: [] });
  for (const [index, one] of processes.entries()) await add(String(100 + index), one);
  return { proc, readTable: async () => parseMountTable([root, mounted(here)].join('\n')) };
}

const outside = '/var/lib/docker/plugins/abc/propagated-mount/docker/data/data';

test('seen at the path that Docker has for it', async (t) => {
  const docker = { comm: 'dockerd', namespace: 'mnt:[2]', mounts: [root, mounted(outside)] };
  await requireSeenByDocker(here, await machine(t, [docker]));
});

test('not seen: nothing there, or something else, or at another place', async (t) => {
  for (const mounts of [
    [root],
    [root, mounted(outside, '/vols/v/other')],
    [root, mounted(outside, undefined, '8:2')],
    [root, mounted('/x/y')],
  ]) {
    const view = await machine(t, [
      { comm: 'dockerd', namespace: 'mnt:[2]', mounts },
      { comm: 'bash', mounts: [mounted(outside)] },
    ]);
    await assert.rejects(
      requireSeenByDocker(here, view),
      failsWith('FAILED_PRECONDITION', /does not see.*\/data\/docker/),
    );
  }
});

test('one of several dockerds is enough, and so is the same namespace', async (t) => {
  const blind = { comm: 'dockerd', namespace: 'mnt:[2]', mounts: [root] };
  await requireSeenByDocker(here, await machine(t, [blind, { ...blind, mounts: [root, mounted(outside)] }]));
  await requireSeenByDocker(here, await machine(t, [blind, { ...blind, namespace: 'mnt:[1]' }]));
});

test('where no dockerd can be seen, nothing can be told', async (t) => {
  await requireSeenByDocker(here, await machine(t, [{ comm: 'bash', namespace: 'mnt:[2]', mounts: [root] }]));
});

test('a mount that is not seen is taken away again and has no caller', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const w = await world(t);
  const door = w.open();
  await door.create(aCall(), 'data', { connection: 'nas' });
  w.requireSeen = async () => {
    throw new Error('unseen');
  };
  await assert.rejects(door.mount(aCall(), 'data', 'a'), /unseen/);
  assert.equal(await door.path(aCall(), 'data'), undefined);
  while (w.mounted.size > 0) {
    t.mock.timers.tick(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
});
