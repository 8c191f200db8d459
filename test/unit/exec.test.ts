import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { collectOutput } from '../../src/backends/exec/bounded-output.ts';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { HostStrategy } from '../../src/backends/exec/host-strategy.ts';
import { type CommandEvent, createRunner, type RunnerOptions } from '../../src/backends/exec/runner.ts';
import { supervise } from '../../src/backends/exec/supervise.ts';
import { defaultTimeLimits, readTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';

const call = detachedContext(silentLogger);
const sh = (script: string, timeoutMs = 30_000) => ({ program: 'sh', args: ['-c', script], timeoutMs });

function recorder(options: RunnerOptions = {}) {
  const events: CommandEvent[] = [];
  return { run: createRunner({ ...options, onCommand: (event) => events.push(event) }), events };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** True when the process is gone, or is a zombie that only its new parent can reap. */
async function ended(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat === '' || / Z /.test(stat);
}

async function untilEnded(pid: number): Promise<void> {
  while (!(await ended(pid))) await setImmediate();
}

test('a command gives its output and exit code', async () => {
  const { run, events } = recorder();
  const output = await run(call, { ...sh('printf out; printf err >&2; exit 3'), accept: [0, 3] });
  assert.deepEqual(output, { code: 3, stdout: 'out', stderr: 'err' });
  assert.deepEqual(
    events.map(({ program, outcome }) => ({ program, outcome })),
    [{ program: 'sh', outcome: 'ok' }],
  );
});

test('arguments reach the program as they are, without a shell', async () => {
  const { run } = recorder();
  const hostile = ['$(id)', '; reboot', "a'b", 'new\nline', '*', ''];
  const output = await run(call, { program: 'printf', args: ['%s|', ...hostile], timeoutMs: 30_000 });
  assert.equal(output.stdout, hostile.map((text) => `${text}|`).join(''));
});

test('input is written and closed; without it the input is empty', async () => {
  const { run } = recorder();
  const secret = 'x'.repeat(300_000);
  const given = await run(call, { program: 'wc', args: ['-c'], timeoutMs: 30_000, input: secret });
  assert.equal(given.stdout.trim(), '300000');
  const none = await run(call, { program: 'wc', args: ['-c'], timeoutMs: 30_000 });
  assert.equal(none.stdout.trim(), '0');
  const unread = await run(call, { program: 'true', args: [], timeoutMs: 30_000, input: secret });
  assert.equal(unread.code, 0);
});

test('the environment is small, in C, and takes additions', async () => {
  process.env.LD_HAND_OVER = 'must not be seen';
  const run = createRunner({ env: { PATH: '/usr/bin:relative:/opt/x', LD_LIBRARY_PATH: '/lib', SECRET: 'x' } });
  const output = await run(call, { program: 'env', args: [], timeoutMs: 30_000, env: { ADDED: 'yes' } });
  delete process.env.LD_HAND_OVER;
  const lines = output.stdout.trim().split('\n').sort();
  assert.deepEqual(
    lines.map((line) => line.split('=')[0]),
    ['ADDED', 'LC_ALL', 'PATH'],
  );
  const path = lines[2] ?? '';
  assert.ok(path.startsWith('PATH=/usr/bin:/opt/x:'), path);
  assert.ok(path.split(':').includes('/usr/sbin') && !path.includes('relative'), path);
});

test('a failure carries the exit code and what the program said, on one line', async () => {
  const { run, events } = recorder();
  const failure = await run(call, sh('echo "mount: bad\n   thing" >&2; exit 32')).catch((error: unknown) => error);
  assert.ok(failure instanceof CommandFailed);
  assert.ok(failure instanceof CallError);
  assert.equal(failure.code, 'INTERNAL');
  assert.equal(failure.exitCode, 32);
  assert.equal(failure.signal, null);
  assert.equal(failure.stderr, 'mount: bad thing');
  assert.equal(failure.message, '`sh` failed (exit 32): mount: bad thing');
  assert.equal(events[0]?.outcome, 'failed');
});

test('a full disk is RESOURCE_EXHAUSTED', async () => {
  const { run } = recorder();
  await assert.rejects(run(call, sh('echo "cp: write error: No space left on device" >&2; exit 1')), {
    code: 'RESOURCE_EXHAUSTED',
  });
});

test('a child that is killed says by which signal', async () => {
  const { run } = recorder();
  const failure = await run(call, sh('kill -9 $$')).catch((error: unknown) => error);
  assert.ok(failure instanceof CommandFailed);
  assert.equal(failure.signal, 'SIGKILL');
  assert.equal(failure.exitCode, null);
  assert.match(failure.message, /ended by SIGKILL/);
});

test('a missing program is FAILED_PRECONDITION and says where it was looked for', async () => {
  const { run, events } = recorder();
  await assert.rejects(run(call, { program: 'no-such-program', args: [], timeoutMs: 1000 }), (error: unknown) => {
    assert.ok(error instanceof CallError);
    assert.equal(error.code, 'FAILED_PRECONDITION');
    assert.match(error.message, /`no-such-program` was not found \(searched .*\/usr\/sbin/);
    return true;
  });
  assert.equal(events[0]?.outcome, 'missing');
});

test('a file that is no program is FAILED_PRECONDITION', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'exec-'));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'tool'), 'not executable', { mode: 0o644 });
  const run = createRunner({ paths: { tool: join(directory, 'tool') } });
  await assert.rejects(run(call, { program: 'tool', args: [], timeoutMs: 1000 }), {
    code: 'FAILED_PRECONDITION',
    message: new RegExp(`may not be run \\(searched ${directory}/tool\\)`),
  });
});

test('arguments that no program can take are INVALID_ARGUMENT', async () => {
  const { run } = recorder();
  await assert.rejects(run(call, { program: 'true', args: ['a\0b'], timeoutMs: 1000 }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(run(call, { program: 'true', args: ['x'.repeat(4_000_000)], timeoutMs: 1000 }), {
    code: 'INVALID_ARGUMENT',
  });
});

test('a hung program that ignores SIGTERM is killed with its descendants', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'exec-'));
  t.after(() => rm(directory, { recursive: true }));
  const pids = join(directory, 'pids');
  const { run, events } = recorder({ killGraceMs: 50 });
  const script = `trap "" TERM; sleep 600 & echo $! $$ > ${pids}; while :; do wait; done`;
  await assert.rejects(run(call, sh(script, 300)), {
    code: 'DEADLINE_EXCEEDED',
    message: '`sh` did not finish within 0.3 s and was ended',
  });
  assert.equal(events[0]?.outcome, 'timeout');
  const [sleeper, shell] = (await readFile(pids, 'utf8')).split(' ').map(Number) as [number, number];
  assert.equal(alive(shell), false, 'the child is reaped');
  await untilEnded(sleeper);
});

test('a cancelled call ends its child and gets its own reason', async () => {
  const controller = new AbortController();
  const { run, events } = recorder();
  const reason = new CallError('CANCELLED', 'the caller left');
  const running = run({ ...call, signal: controller.signal }, { program: 'sleep', args: ['600'], timeoutMs: 600_000 });
  controller.abort(reason);
  await assert.rejects(running, (error) => error === reason);
  assert.equal(events[0]?.outcome, 'cancelled');
  await assert.rejects(
    run({ ...call, signal: controller.signal }, { program: 'true', args: [], timeoutMs: 1000 }),
    (error) => error === reason,
  );
  assert.equal(events.length, 1, 'nothing is started for a call that is over');
});

test('output is bounded, and says that it was cut', async () => {
  const { run } = recorder();
  const output = await run(call, sh('yes | head -c 3000000; echo end >&2'));
  assert.equal(output.truncated, true);
  assert.ok(output.stdout.endsWith('\n[output cut after 1048576 bytes]'));
  assert.equal(output.stdout.length, 1_048_576 + '\n[output cut after 1048576 bytes]'.length);
  assert.equal(output.stderr, 'end\n');
});

test('a flood is ended by the time limit', async () => {
  const { run } = recorder({ killGraceMs: 50 });
  await assert.rejects(run(call, { program: 'yes', args: [], timeoutMs: 200 }), { code: 'DEADLINE_EXCEEDED' });
});

test('a daemon that a program leaves behind does not hold the command, and lives', async (t) => {
  const { run } = recorder();
  const output = await run(call, sh('sleep 600 & echo $!'));
  const daemon = Number(output.stdout);
  t.after(() => process.kill(daemon, 'SIGKILL'));
  assert.equal(output.code, 0);
  assert.equal(await ended(daemon), false);
});

test('what a program wrote before it ended is read, however long this process is held up', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'exec-'));
  t.after(() => rm(folder, { recursive: true }));
  const marker = join(folder, 'marker');
  const child = spawn('sh', ['-c', 'echo written; touch "$0"; exec sleep 600', marker], { detached: true });
  t.after(() => child.kill('SIGKILL'));
  const output = collectOutput(child.stdout, 1000);
  const limits = { signal: call.signal, timeoutMs: 60_000, overLimit: 'too long', killGraceMs: 10, abandonMs: 10 };
  const ending = supervise(child, limits);
  // The end of many children may be told at once, after the output of only some of them was looked at; and then something else may take long.
  await setImmediate();
  child.emit('exit', 0, null);
  const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  while (!existsSync(marker)) pause();
  pause();
  assert.equal((await ending).exitCode, 0);
  assert.equal(output.text(), 'written\n');
});

test('a child that cannot be ended is left behind', async (t) => {
  // It leads no group of its own, so killing the group misses it, as killing misses a process that waits for a dead disk.
  const child = spawn('sleep', ['600']);
  t.after(() => child.kill('SIGKILL'));
  const limits = { signal: call.signal, timeoutMs: 10, overLimit: 'too long', killGraceMs: 10, abandonMs: 10 };
  const ending = await supervise(child, limits);
  assert.equal(ending.abandoned, true);
  assert.equal(ending.reason?.code, 'DEADLINE_EXCEEDED');
  assert.equal(alive(child.pid as number), true);
});

test('a host strategy and paths decide what is started', async () => {
  const strategy: HostStrategy = (program, args) => ({
    file: 'sh',
    args: ['-c', 'echo "$ROOT $0 $@"', program, ...args],
    env: { ROOT: '/host' },
  });
  const run = createRunner({ strategy, paths: { mount: '/opt/mount' } });
  const output = await run(call, { program: 'mount', args: ['-o', 'bind'], timeoutMs: 30_000 });
  assert.equal(output.stdout, '/host /opt/mount -o bind\n');
});

test('commands are logged at debug with arguments but without input and environment', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) });
  await createRunner()(
    { signal: call.signal, log },
    { program: 'cat', args: ['-'], timeoutMs: 30_000, input: 'hidden-input', env: { PASSWD: 'hidden-env' } },
  );
  assert.equal(lines.length, 1);
  const line = JSON.parse(lines[0] as string);
  assert.equal(line.program, 'cat');
  assert.deepEqual(line.args, ['-']);
  assert.equal(line.outcome, 'ok');
  assert.ok(!lines[0]?.includes('hidden'));
});

test('time limits are numbers from the environment; nonsense is told and ignored', () => {
  const warnings: string[] = [];
  const env = {
    MOUNT_DEFAULT_TIMEOUT: '45000',
    ISCSI_DEFAULT_TIMEOUT: '30s',
    NVMEOF_DEFAULT_TIMEOUT: '0',
    FILESYSTEM_DEFAULT_TIMEOUT: '99999999999',
    RESTIC_DEFAULT_TIMEOUT: '',
  };
  const limits = readTimeLimits(env, (warning) => warnings.push(warning));
  assert.deepEqual(limits, { ...defaultTimeLimits, mount: 45_000 });
  assert.equal(warnings.length, 3);
  assert.match(warnings[0] as string, /ISCSI_DEFAULT_TIMEOUT="30s" is not a number of milliseconds; 30000 is used/);
});
