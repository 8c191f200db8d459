/** Devices that somebody has without the kernel's knowing it for more than an open file are not detached under them. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, stat, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { sessionsOf } from '../../src/node/attachers/iscsi/session.ts';
import { readSubsystem } from '../../src/node/attachers/nvmeof/subsystem.ts';
import { refuseInUse } from '../../src/node/device-in-use.ts';
import { deviceNumber } from '../../src/node/device-number.ts';
import { refuseOpen } from '../../src/node/device-users.ts';
import { unitsBelow } from '../../src/node/scsi-disk.ts';
import { loopAttacher } from './loop-attacher.ts';
import { bench, blockCapability, call, enterMountNamespace, host, loopDevice } from './node-support.ts';

enterMountNamespace(import.meta.url);

const numberOf = async (path: string) => deviceNumber((await stat(path)).rdev);

/** A program that says when it has done what it is for, and then goes on until it is killed. */
async function running(t: { after(end: () => Promise<void>): void }, ...argv: readonly [string, ...string[]]) {
  const [program, ...args] = argv;
  const child: ChildProcess = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  t.after(end);
  if (child.stdout) await once(child.stdout, 'data');
  return { pid: child.pid, end };
}

test('a block volume that a process writes to by another device node stays until it has closed it', async (t) => {
  const root = await loopDevice(t, 2 ** 20);
  const b = await bench(t, {
    attachers: { loop: loopAttacher },
    context: { node_attach_driver: 'loop', file: root.file },
  });
  await b.stage({ capability: blockCapability });
  const [major = '', minor = ''] = (await numberOf(root.device)).split(':');
  host('mknod', b.path('node'), 'b', major, minor);
  const reader = await running(t, 'bash', '-c', 'exec 3<"$0"; echo open; exec sleep 1000', b.path('node'));
  const writer = await running(t, 'bash', '-c', 'exec 3<>"$0"; echo open; exec sleep 1000', b.path('node'));
  const message = new RegExp(`in use: process ${writer.pid} \\((bash|sleep)\\) has it open for writing`);
  await assert.rejects(b.unstage(), { code: 'FAILED_PRECONDITION', message });
  assert.equal(host('losetup', '--associated', root.file, '--noheadings', '--output', 'NAME').trim(), root.device);
  await writer.end();
  await b.unstage();
  await reader.end();
});

test('a device node that is mounted in another mount namespace is in use', async (t) => {
  const { device } = await loopDevice(t, 2 ** 20);
  const number = await numberOf(device);
  await refuseOpen(call, number);
  const b = await bench(t);
  await writeFile(b.path('file'), '');
  // It needs a /dev of the kernel's own kind, which a container that runs the tests may not have.
  const script =
    'mkdir "$0.dev" && mount -t devtmpfs none "$0.dev" && mount --bind "$0.dev/$1" "$0" && echo mounted && exec sleep 1000';
  const args = [
    '--mount',
    '--propagation',
    'private',
    'bash',
    '-c',
    script,
    b.path('file'),
    device.slice('/dev/'.length),
  ];
  const other = await running(t, 'unshare', ...args);
  const message = new RegExp(`its node is mounted at ${b.path('file')}, which process ${other.pid} \\(\\w+\\) sees`);
  await assert.rejects(refuseOpen(call, number), { code: 'FAILED_PRECONDITION', message });
  await other.end();
  await refuseOpen(call, number);
});

test('a process that can open no more files does not take what it cannot see for free', async (t) => {
  const { device } = await loopDevice(t, 2 ** 20);
  const number = await numberOf(device);
  host('prlimit', `--pid=${process.pid}`, '--nofile=200:');
  const opened: FileHandle[] = [];
  t.after(() => Promise.all(opened.map((one) => one.close())));
  const full = async () => {
    for (;;) {
      try {
        opened.push(await open('/dev/null'));
      } catch (error) {
        return assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE');
      }
    }
  };
  await full();
  const looks = [
    () => refuseInUse(call, number),
    () => refuseOpen(call, number),
    () => sessionsOf('/sys/..', 'iqn.2026-01.org.example:t'),
    () => readSubsystem('/sys/..', 'nqn.2026-01.org.example:t'),
    () => unitsBelow('/sys'),
  ];
  for (const look of looks) await assert.rejects(look, (error) => /EMFILE/.test(String(error)), String(look));
  await Promise.all(opened.splice(0).map((one) => one.close()));
  await refuseInUse(call, number);
});
