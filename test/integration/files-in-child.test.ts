/** The process that works on a share: killed, hanging, out of work. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { FilesChild, startFilesChild } from '../../src/drivers/directory/files-child.ts';
import {
  createFilesInChild,
  type FilesInChild,
  type FilesInChildOptions,
} from '../../src/drivers/directory/files-in-child.ts';
import { failure, makeFolder, sh } from './local-hostpath-support.ts';
import { fileWorkers } from './share-support.ts';

interface Site {
  readonly files: FilesInChild;
  readonly base: string;
}

async function open(t: TestContext, options: Partial<FilesInChildOptions> = {}): Promise<Site> {
  const base = await makeFolder(t);
  const files = createFilesInChild({ base, title: 'nas:/x', log: silentLogger, limitMs: 20_000, ...options });
  t.after(() => files.close());
  return { files, base };
}

/** Waits until the process is gone. */
async function gone(pid: number): Promise<void> {
  while ((await fileWorkers()).includes(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
}

function pidOf({ files }: Site): number {
  assert.ok(files.pid !== undefined);
  return files.pid;
}

test('results and errors are those of the calls themselves', async (t) => {
  const { files, base } = await open(t);
  const path = join(base, 'ü\n"');
  assert.equal(await files.kindOf(path), undefined);
  assert.equal(await files.makeFolder(path), true);
  assert.equal(await files.kindOf(path), 'directory');
  assert.equal(await files.writeNew(join(path, 'a'), 'text\n'), true);
  assert.equal(await files.writeNew(join(path, 'a'), 'other'), false);
  assert.equal(await files.read(join(path, 'a')), 'text\n');
  assert.equal(await files.read(join(path, 'b')), undefined);
  assert.equal(await files.publish(join(path, 'a'), join(path, 'c')), true);
  assert.deepEqual(await files.list(path), ['c']);
  assert.equal(await files.realPath(join(path, '..')), base);
  assert.ok(Math.abs((await files.bornAt(path)).getTime() - Date.now()) < 60_000);
  assert.ok((await files.touchedAt(path)) instanceof Date);
  assert.equal(await files.touchedAt(join(path, 'b')), undefined);
  assert.equal((await files.space(base))?.total, (await files.space('/tmp'))?.total);
  await assert.rejects(files.setMode(join(path, 'b'), 0o700), { code: 'ENOENT', message: /ENOENT.*chmod/ });
  await assert.rejects(files.kindOf('\0'), { code: 'ERR_INVALID_ARG_VALUE' });
  await files.removeTree(path, path, new AbortController().signal);
  assert.deepEqual(await readdir(base), []);
});

test('a removal stops when its call is over, and the process goes on', async (t) => {
  const site = await open(t);
  const { files, base } = site;
  await mkdir(join(base, 'a/b'), { recursive: true });
  await writeFile(join(base, 'a/b/c'), '');
  await files.kindOf(base);
  const pid = pidOf(site);
  const tree = [join(base, 'a'), join(base, 'a')] as const;
  await assert.rejects(files.removeTree(...tree, AbortSignal.abort()), failure('CANCELLED'));
  assert.equal(await files.kindOf(join(base, 'a/b')), 'directory');
  process.kill(pid, 'SIGSTOP');
  const stop = new AbortController();
  const removal = files.removeTree(...tree, stop.signal);
  stop.abort();
  process.kill(pid, 'SIGCONT');
  await assert.rejects(removal, failure('CANCELLED'));
  assert.equal(await files.kindOf(join(base, 'a')), 'directory');
  assert.equal(pidOf(site), pid);
});

test('a killed process fails what it was doing, and the next request has another', async (t) => {
  const site = await open(t);
  const { files, base } = site;
  await files.kindOf(base);
  const pid = pidOf(site);
  process.kill(pid, 'SIGSTOP');
  const answers = [files.kindOf(base), files.list(base)];
  const failures = answers.map((answer) =>
    assert.rejects(answer, failure('UNAVAILABLE', /nas:\/x.*ended \(SIGKILL\)/)),
  );
  process.kill(pid, 'SIGKILL');
  await Promise.all(failures);
  assert.equal(await files.kindOf(base), 'directory');
  assert.notEqual(pidOf(site), pid);
});

test('one that hangs is killed, the share is left alone for a moment, and works again', async (t) => {
  const site = await open(t, { limitMs: 3000 });
  const { files, base } = site;
  await files.kindOf(base);
  const pid = pidOf(site);
  process.kill(pid, 'SIGSTOP');
  const answers = [files.kindOf(base), files.list(base)];
  await Promise.all(
    answers.map((answer) => assert.rejects(answer, failure('UNAVAILABLE', /did not answer within 3 s/))),
  );
  await assert.rejects(files.kindOf(base), failure('UNAVAILABLE', /nas:\/x is out of reach.*it is asked again in 1 s/));
  await gone(pid);
  for (;;) {
    const kind = await files.kindOf(base).catch((error: Error) => error);
    if (kind === 'directory') break;
    assert.match(String(kind), /it is asked again/);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal((await fileWorkers()).length, 1);
});

test('without work it ends, and is there again when there is some', async (t) => {
  const site = await open(t, { idleMs: 1 });
  const { files, base } = site;
  await files.kindOf(base);
  const [pid] = await fileWorkers();
  if (pid !== undefined) await gone(pid);
  assert.equal(files.pid, undefined);
  assert.equal(await files.kindOf(base), 'directory');
});

test('nothing is left when it is closed, whatever it was doing', async (t) => {
  const site = await open(t);
  const { files, base } = site;
  await files.kindOf(base);
  process.kill(pidOf(site), 'SIGSTOP');
  const failed = assert.rejects(files.list(base), failure('UNAVAILABLE'));
  await files.close();
  await failed;
  assert.deepEqual(await fileWorkers(), []);
  await assert.rejects(files.list(base), failure('UNAVAILABLE', /closed/));
});

test('a folder that is held cannot be unmounted until it lets go', async (t) => {
  const site = await open(t);
  const { files, base } = site;
  const [one, other] = [join(base, 'one'), join(base, 'other')];
  for (const place of [one, other]) {
    await mkdir(place);
    await sh('mount', '-t', 'tmpfs', 'tmpfs', place);
    t.after(() => sh('umount', '--quiet', place).catch(() => {}));
  }
  await files.hold(one);
  await files.hold(one);
  await assert.rejects(sh('umount', one), /busy/);
  await files.hold(other);
  await sh('umount', one);
  await assert.rejects(sh('umount', other), /busy/);
  await files.close();
  await sh('umount', other);
});

test('it ends when this process is killed', async (t) => {
  const base = await makeFolder(t);
  const module = new URL('../../src/drivers/directory/files-in-child.ts', import.meta.url);
  const code = `import { createFilesInChild } from ${JSON.stringify(module)};
    const files = createFilesInChild({ base: '/', title: 'x', log: { warn() {}, info() {} }, limitMs: 20_000 });
    await files.hold(${JSON.stringify(base)});
    console.log(files.pid);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => owner.kill('SIGKILL'));
  const [line] = await once(owner.stdout, 'data');
  const pid = Number(line);
  assert.ok(await isFilesWorker(pid));
  owner.kill('SIGKILL');
  while (await isFilesWorker(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
});

async function isFilesWorker(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes('files-worker');
}

test('of children that cannot be ended there are few', async (t) => {
  const base = await makeFolder(t);
  let now = 0;
  let started = 0;
  const immortal = ({ onSilent }: Parameters<typeof startFilesChild>[0]): FilesChild => {
    started++;
    const child: FilesChild = {
      pid: undefined,
      pending: 0,
      answered: false,
      async ask() {
        onSilent(child);
        throw new CallError('UNAVAILABLE', 'it did not answer');
      },
      end: () => {},
      kill: () => {},
      ended: new Promise(() => {}),
      unref: () => {},
    };
    return child;
  };
  const files = createFilesInChild({
    ...{ base, title: 'nas:/x', log: silentLogger, limitMs: 1 },
    ...{ start: immortal, clock: () => now },
  });
  for (let minute = 0; minute < 20; minute++) {
    await assert.rejects(files.kindOf(base), failure('UNAVAILABLE'));
    await assert.rejects(files.kindOf(base), failure('UNAVAILABLE', /asked again/));
    now += 60_000;
  }
  assert.equal(started, 3);
  await assert.rejects(files.kindOf(base), failure('UNAVAILABLE', /3 processes hang on it and cannot be ended/));
});
