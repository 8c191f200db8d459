/** Programs started by the small process that the executable also is, in the ways that its owner must be able to trust. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child, StartChild } from '../../src/backends/exec/child.ts';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { Command } from '../../src/backends/exec/run.ts';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { createStarter, ownStarter } from '../../src/backends/exec/starter.ts';
import { answerReader, type StarterAnswer, startRequest } from '../../src/backends/exec/starter-messages.ts';
import { detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { executable, missing } from './executable-support.ts';

const skip = missing;
const call = detachedContext(silentLogger);
const program = { ...ownStarter, file: executable };

/** What was started by the small process, the newest last. */
const started: Child[] = [];
const starter = createStarter(program);
const startChild: StartChild = (options) => {
  const child = starter(options);
  if (child) started.push(child);
  return child;
};
const run = createRunner({ startChild, killGraceMs: 200 });
const sh = (script: string, more: Partial<Command> = {}): Command => ({
  program: 'sh',
  args: ['-c', script],
  timeoutMs: 30_000,
  ...more,
});

/** Runs programs until one was started by the small process. */
async function ready(): Promise<void> {
  const count = started.length;
  while (started.length === count) await run(call, { program: 'true', args: [], timeoutMs: 30_000 });
}

/** Whether a process is there and no zombie. */
async function lives(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/^[ZX]$/.test(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
}

async function untilEnded(pid: number): Promise<void> {
  while (await lives(pid)) await delay(5);
}

const parentOf = async (pid: number) =>
  Number(/^PPid:\s*(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);

before(async () => {
  if (!skip) await ready();
});

test('it is started by the small process, with its arguments, its name and its environment alone', {
  skip,
}, async () => {
  const count = started.length;
  const named = createRunner({
    startChild,
    strategy: () => ({ file: '/bin/sh', argv0: 'named', args: ['-c', script, 'a b', "c'd", ''] }),
  });
  const script = 'tr "\\0" "|" < /proc/$$/cmdline | tail -c 20; printf "%s;" "$0" "$@"; env -0 | tr "\\0" "|" | sort';
  const { stdout } = await named(call, { program: 'x', args: [], timeoutMs: 30_000, env: { GIVEN: 'a=b' } });
  assert.equal(started.length, count + 1);
  assert.match(stdout, /a b;c'd;;/);
  assert.match(stdout, /GIVEN=a=b\|/);
  assert.doesNotMatch(stdout, /HOME=/);
});

test('it has no input, the root for its directory, a session of its own, no signal blocked and no other file', {
  skip,
}, async () => {
  const script =
    'wc -c; pwd; ls /proc/self/fd | tr "\\n" " "; cat /proc/self/status | grep -E "^Sig(Blk|Ign|Cgt)"; cut -d" " -f5,6 /proc/$$/stat; echo $$';
  const { stdout } = await run(call, sh(script));
  const [count, directory, ...lines] = stdout.trim().split('\n');
  assert.deepEqual([count, directory], ['0', '/']);
  const otherwise = await createRunner()(call, sh('ls /proc/self/fd | tr "\\n" " "'));
  assert.equal(lines[0], `${otherwise.stdout}SigBlk:\t${'0'.repeat(16)}`);
  assert.deepEqual(
    lines.slice(1, 3).map((line) => line.replace(/\s+0+$/, '')),
    ['SigIgn:', 'SigCgt:'],
  );
  const pid = lines[4];
  assert.equal(lines[3], `${pid} ${pid}`);
});

test('its exit code and both its outputs come back, however long', { skip }, async () => {
  const { code, stdout, stderr } = await run(call, {
    ...sh('seq 1 300000; seq 1 50000 >&2; exit 3', { keepBytes: 10 * 2 ** 20 }),
    accept: [3],
  });
  assert.equal(code, 3);
  assert.equal(stdout, Array.from({ length: 300_000 }, (_, index) => `${index + 1}\n`).join(''));
  assert.equal(stderr, Array.from({ length: 50_000 }, (_, index) => `${index + 1}\n`).join(''));
});

test('what it wrote before it ended is there when it is told to have ended', { skip }, async () => {
  const text = '0123456789'.repeat(5000);
  await ready();
  for (let round = 0; round < 20; round++) {
    const seen: string[] = [];
    const env = { PATH: process.env.PATH ?? '' };
    const child = startChild({ file: 'sh', args: ['-c', `sleep 600 & printf %s ${text}; echo $! >&2`], env });
    assert.ok(child);
    child.stdout?.on('data', (chunk) => seen.push(chunk.toString()));
    const left = new Promise<number>((resolve) => {
      child.stderr?.on('data', (chunk) => resolve(Number(chunk)));
    });
    await new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
    });
    assert.equal(seen.join(''), text);
    process.kill(await left, 'SIGKILL');
  }
});

test('a program that is missing or may not be run says so', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'starter-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'plain'), '', { mode: 0o644 });
  const count = started.length;
  const start = (name: string) => run(call, { program: name, args: [], timeoutMs: 30_000 });
  await assert.rejects(start('no-such-program'), /`no-such-program` was not found/);
  await assert.rejects(start(join(folder, 'none')), /was not found/);
  await assert.rejects(start(join(folder, 'plain')), /may not be run/);
  assert.equal(started.length, count + 3);
});

test('a signal that ends it is told', { skip }, async () => {
  await assert.rejects(run(call, sh('kill -USR1 $$')), (error) => {
    assert.ok(error instanceof CommandFailed);
    assert.match(error.message, /SIGUSR1/);
    return true;
  });
});

test('when its caller leaves it ends with all that it has started', { skip }, async () => {
  const caller = new AbortController();
  const pids: number[] = [];
  const script = 'sleep 600 & echo $!; trap "" TERM; echo $$; while :; do sleep 600; done';
  const takeLine = (line: string) => {
    if (pids.push(Number(line)) === 2) caller.abort(new CallError('CANCELLED', 'the caller has gone'));
    return true;
  };
  await assert.rejects(run({ ...call, signal: caller.signal }, sh(script, { takeLine })), /the caller has gone/);
  for (const pid of pids) await untilEnded(pid);
});

test('one whose caller leaves before it is known to have begun is ended', { skip }, async () => {
  const caller = new AbortController();
  const running = run({ ...call, signal: caller.signal }, sh('sleep 600'));
  caller.abort(new CallError('CANCELLED', 'the caller has gone'));
  await assert.rejects(running, /the caller has gone/);
  await untilEnded(started.at(-1)?.pid as number);
});

test('one that leaves somebody behind who keeps its output is not waited for', { skip }, async () => {
  const { stdout } = await run(call, sh('sleep 600 & echo $!'));
  const left = Number(stdout);
  assert.ok(await lives(left));
  process.kill(left, 'SIGKILL');
});

test('more than there is room for are started all the same', { skip }, async () => {
  const all = await Promise.all(Array.from({ length: 150 }, (_, index) => run(call, sh(`echo ${index}`))));
  assert.deepEqual(
    all.map(({ stdout }) => Number(stdout)),
    Array.from({ length: 150 }, (_, index) => index),
  );
});

test('what is too long to be asked of it is started all the same', { skip }, async () => {
  const long = 'x'.repeat(100_000);
  const { stdout } = await run(call, { program: 'printf', args: ['%s', long], timeoutMs: 30_000 });
  assert.equal(stdout, long);
});

test('when the small process ends, what it has started is ended, and others are started', { skip }, async () => {
  await ready();
  const running = run(call, sh('echo; exec sleep 600'));
  const child = started.at(-1) as Child;
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', () => resolve());
  });
  const pid = child.pid as number;
  process.kill(await parentOf(pid), 'SIGKILL');
  await assert.rejects(running, /SIGKILL/);
  await untilEnded(pid);
  await ready();
});

test('one that never gets ready is not used, and not tried again', { skip: false }, async () => {
  const none = createRunner({ startChild: createStarter({ file: '/no/such/file', argv0: 'x' }) });
  for (let tries = 0; tries < 3; tries++) await none(call, { program: 'true', args: [], timeoutMs: 30_000 });
});

test('it ends with its owner, and what it has started does not', { skip }, async () => {
  const own = spawn(program.file, [], { argv0: program.argv0, env: {}, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(own, 'exit');
  const pid = await new Promise<number>((resolve) => {
    const take = (answer: StarterAnswer) => {
      if (answer.kind === 'started' && answer.id === 1) resolve(answer.pid);
    };
    own.stdout.on('data', answerReader(take));
    own.stdin.write(startRequest(1, { file: '/bin/sleep', args: ['600'], env: {} }));
  });
  // Whoever ends all processes of a service.
  own.kill('SIGTERM');
  own.stdin.end();
  assert.deepEqual(await ended, [0, null]);
  assert.ok(await lives(pid));
  process.kill(pid, 'SIGKILL');
});
