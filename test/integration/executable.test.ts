import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeInside, executable, inEmptyRoot, missing, runToEnd } from './executable-support.ts';

const skip = missing;
const asRoot = { skip: missing || (process.getuid?.() !== 0 && 'NOT TESTED: an empty root takes root') };
const { version }: { version: string } = JSON.parse(
  await readFile(join(import.meta.dirname, '../../package.json'), 'utf8'),
);

test('the executable is static', { skip }, async () => {
  const { code, stdout } = await runToEnd('readelf', ['-dlW', executable], { ...process.env, LC_ALL: 'C' });
  assert.equal(code, 0);
  assert.match(stdout, /LOAD/);
  assert.doesNotMatch(stdout, /NEEDED|INTERP/);
});

test('it says its version, and nothing else', { skip }, async () => {
  const { code, stdout, stderr } = await runToEnd(executable, ['--version']);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.ok(stdout.includes(version), stdout);
});

test('it runs in a root that holds only /proc and a writable folder', asRoot, async (t) => {
  const { code, stdout, stderr } = await inEmptyRoot(t, 'inside --version');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.ok(stdout.includes(version), stdout);
});

test('in that root it serves, is ready, makes a volume and stops when asked to', asRoot, async (t) => {
  const commands = `chroot "$root" /switchboard serve >"$root/w/log" 2>&1 &
server=$!
until inside probe >/dev/null 2>&1; do kill -0 $server || { cat "$root/w/log" >&2; exit 1; }; done
inside ctl create data --connection local --size 1Mi
find "$root/w/state/volumes" -name '*data*'
mkdir "$root/w/share"
printf %s "$share" >"$root/w/state/connections/share.yaml"
inside ctl create shared --connection share --size 1Mi
find "$root/w/share/v" -name shared
kill -TERM $server
wait $server`;
  // It works on a share by a process of its own, which is this very program again.
  const nfs = { shareHost: '127.0.0.1', shareBasePath: '/srv', controllerBasePath: '/w/share' };
  const share = JSON.stringify({ driver: 'nfs-client', nfs });
  const { code, stdout, stderr } = await inEmptyRoot(t, commands, { SWITCHBOARD_STATE_DIR: '/w/state', share });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.match(stdout, /\/w\/state\/volumes\/.*data/);
  assert.match(stdout, /\/w\/share\/v\/shared/);
});

test('without /proc it says so in one line', asRoot, async (t) => {
  const { code, stdout, stderr } = await inEmptyRoot(t, 'umount "$root/proc"; inside --version');
  assert.deepEqual({ code, stdout }, { code: 127, stdout: '' });
  assert.match(stderr, /^switchboard: [^\n]*\/proc is not mounted[^\n]*\n$/);
});

test('what a machine preloads into its programs is not loaded', asRoot, async (t) => {
  const { code, stderr } = await inEmptyRoot(
    t,
    'mkdir "$root/etc"; echo /none.so >"$root/etc/ld.so.preload"; inside --version',
  );
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
});

// The program's own main function would end the process before what is tried beside it has an answer.
const exitOnlyWith9 = 'process.exit = ((exit) => (code) => code === 9 && exit(9))(process.exit);';

test('localhost has its address where the root has a hosts file', asRoot, async (t) => {
  const code = `${exitOnlyWith9}
require('node:dns').lookup('localhost', (error, address) => process.exit(address === '127.0.0.1' ? 9 : 1));`;
  const commands = `mkdir "$root/etc"
echo 127.0.0.1 localhost >"$root/etc/hosts"
printf %s "$code" >"$root/w/inside.cjs"
NODE_OPTIONS=--require=/w/inside.cjs inside --version`;
  const { code: ended, stderr } = await inEmptyRoot(t, commands, { code });
  assert.deepEqual({ ended, stderr }, { ended: 9, stderr: '' });
});

const describeProcess = `
const { readdirSync, readFileSync, readlinkSync, writeSync } = require('node:fs');
const link = (fd) => { try { return readlinkSync('/proc/self/fd/' + fd); } catch { return ''; } };
const child = require('node:child_process').execFileSync('/usr/bin/env', ['-0'], { encoding: 'utf8' });
writeSync(1, JSON.stringify({
  own: process.env,
  kernel: readFileSync('/proc/self/environ', 'utf8').split('\\0').filter(Boolean),
  child: child.split('\\0').filter(Boolean),
  files: readdirSync('/proc/self/fd').map(link),
  maps: readFileSync('/proc/self/maps', 'utf8').split('\\n'),
  execPath: process.execPath,
  arguments: process.argv.slice(2),
}));
process.exit(0);`;

interface Described {
  own: Record<string, string>;
  kernel: string[];
  child: string[];
  files: string[];
  maps: string[];
  execPath: string;
  arguments: string[];
}

for (const [title, given] of Object.entries({
  'the environment it was given': { A: '1', B: 'x=y', EMPTY: '' },
  "the caller's own variables for the loader": {
    LD_LIBRARY_PATH: '/none',
    A: '1',
    LD_PRELOAD: 'libm.so.6',
    LD_BIND_NOW: '1',
    GLIBC_TUNABLES: 'glibc.malloc.arena_max=8',
    B: '2',
  },
})) {
  test(`the program and its children have ${title}, and no trace of the start`, { skip }, async (t) => {
    const { NODE_OPTIONS } = await codeInside(t, describeProcess);
    const env = { ...given, NODE_OPTIONS };
    const { code, stdout, stderr } = await runToEnd(executable, ['a', '--b'], env);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    const seen: Described = JSON.parse(stdout);
    const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    assert.deepEqual(seen.own, env);
    assert.deepEqual(seen.kernel.toSorted(), pairs.toSorted());
    assert.deepEqual(seen.child.toSorted(), pairs.toSorted());
    assert.deepEqual(
      seen.files.filter((file) => file.includes('memfd') || file === executable),
      [],
    );
    assert.deepEqual([seen.execPath, seen.arguments], [executable, ['a', '--b']]);
    assert.ok(
      seen.maps.some((line) => line.includes('r-xp') && line.endsWith(executable)),
      'code is mapped from the file',
    );
  });
}

test('an exit code comes through, and so do standard input and output', { skip }, async (t) => {
  const code = `const text = require('node:fs').readFileSync(0, 'utf8');
require('node:fs').writeSync(1, text.toUpperCase()); require('node:fs').writeSync(2, 'aside'); process.exit(42);`;
  const { NODE_OPTIONS } = await codeInside(t, code);
  const ended = await runToEnd(executable, [], { ...process.env, NODE_OPTIONS }, 'some text');
  assert.deepEqual(ended, { code: 42, signal: null, stdout: 'SOME TEXT', stderr: 'aside' });
});

// Keeps the program from its own main function.
const block = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';

for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL'] as const) {
  test(`${signal} ends it as a signal`, { skip }, async (t) => {
    const { NODE_OPTIONS } = await codeInside(t, `require('node:fs').writeSync(1, 'ready'); ${block}`);
    const child = spawn(executable, [], { env: { NODE_OPTIONS }, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    child.kill(signal);
    assert.deepEqual(await once(child, 'exit'), [null, signal]);
  });
}

test('a file that the caller left open keeps its number', { skip }, async (t) => {
  const code = "require('node:fs').writeSync(3, 'through the third'); process.exit(0);";
  const { NODE_OPTIONS } = await codeInside(t, code);
  const child = spawn(executable, [], { env: { NODE_OPTIONS }, stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const [data] = await once(child.stdio[3]!, 'data');
  assert.equal(String(data), 'through the third');
});

test('64 threads work at once', { skip }, async (t) => {
  // Each waits until all have started.
  const thread = `const { parentPort, workerData: started } = require('node:worker_threads');
    Atomics.add(started, 0, 1);
    Atomics.notify(started, 0);
    for (let count; (count = Atomics.load(started, 0)) < 64; ) Atomics.wait(started, 0, count);
    parentPort.postMessage('done');`;
  const code = `const { isMainThread, Worker } = require('node:worker_threads');
if (isMainThread) {
  const workerData = new Int32Array(new SharedArrayBuffer(4));
  let done = 0;
  for (let i = 0; i < 64; i++) {
    const worker = new Worker(${JSON.stringify(thread)}, { eval: true, workerData });
    worker.on('error', (error) => console.error(error.message));
    worker.on('message', () => ++done === 64 && process.exit(9));
  }
}`;
  const { folder, ...env } = await codeInside(t, code);
  // A server, for it does not end by itself.
  const { code: ended, stderr } = await runToEnd(executable, [], { ...env, SWITCHBOARD_STATE_DIR: folder });
  assert.equal(ended, 9, stderr);
});

test('memory that only starting needed is given back, and the program works on', { skip }, async (t) => {
  // Signals and garbage collections while it happens, and work of all kinds after it. On a busy machine it happens before this code is run, so the
  // measure is how much there is: a start touches 40 MiB, and what the program needs after it is less than a tenth.
  const { folder, ...env } = await codeInside(
    t,
    `const fs = require('node:fs'), { execFileSync } = require('node:child_process');
const mapped = () => {
  let inFile = false, kib = 0;
  for (const line of fs.readFileSync('/proc/self/smaps', 'latin1').split('\\n')) {
    if (/^[0-9a-f]+-/.test(line)) inFile = line.endsWith(fs.realpathSync('/proc/self/exe')) && / r-[x-]p /.test(line);
    else if (inFile && line.startsWith('Rss:')) kib += Number(/\\d+/.exec(line)[0]);
  }
  return kib;
};
let signals = 0;
process.on('SIGUSR2', () => signals++);
const deadline = Date.now() + 20_000;
const look = () => {
  process.kill(process.pid, 'SIGUSR2');
  const kib = mapped();
  if (kib > 10_240 && Date.now() < deadline) return setTimeout(look, 20);
  const child = execFileSync('/bin/echo', ['child']).toString().trim();
  const hash = require('node:crypto').createHash('sha256').update('x').digest('hex').length;
  console.log(JSON.stringify({ kib, signals: signals > 0, child, hash, date: new Intl.DateTimeFormat('de').format(0) }));
  process.exit();
};
look();`,
  );
  const { code, stdout, stderr } = await runToEnd(executable, [], {
    ...process.env,
    ...env,
    SWITCHBOARD_STATE_DIR: folder,
  });
  assert.equal(code, 0, stderr);
  const line = stdout.split('\n').find((one) => one.startsWith('{"kib"'));
  const { kib, ...worked } = JSON.parse(line ?? '{}');
  assert.ok(kib <= 10_240, `${kib} KiB are mapped`);
  assert.deepEqual(worked, {
    signals: true,
    child: 'child',
    hash: 64,
    date: '1.1.1970',
  });
});

test('with code in large pages it works on, too', { skip }, async (t) => {
  // Long enough for the launcher to give memory back, which it must not do here.
  const { NODE_OPTIONS } = await codeInside(
    t,
    `const end = Date.now() + 1500; while (Date.now() < end); process.exit(7);`,
  );
  const { code, signal } = await runToEnd(executable, [], { NODE_OPTIONS: `--use-largepages=silent ${NODE_OPTIONS}` });
  assert.deepEqual([code, signal], [7, null]);
});
