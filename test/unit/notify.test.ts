import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command, RunCommand } from '../../src/backends/exec/run.ts';
import { createNotify, type Notification } from '../../src/cli/notify.ts';
import { takeNotifySettings } from '../../src/cli/notify-settings.ts';
import { startWatchdog } from '../../src/cli/notify-watchdog.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';

test('what the service manager wants is taken out of the environment', () => {
  const env = { NOTIFY_SOCKET: '@/org/notify', WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7', OTHER: 'stays' };
  assert.deepEqual(takeNotifySettings(env, 7), { socket: '@/org/notify', watchdogMs: 30_000 });
  assert.deepEqual(env, { OTHER: 'stays' });
});

test('a watchdog that is meant for another process, or is none, is left alone', () => {
  const socket = '/run/notify';
  assert.deepEqual(takeNotifySettings({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: '9', WATCHDOG_PID: '8' }, 7), { socket });
  assert.deepEqual(takeNotifySettings({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: '0' }, 7), { socket });
  assert.deepEqual(takeNotifySettings({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: 'soon' }, 7), { socket });
  assert.equal(takeNotifySettings({ WATCHDOG_USEC: '9', WATCHDOG_PID: '7' }, 7), undefined);
});

test('notifications keep their order, and each is one line a variable', async () => {
  const ran: Command[] = [];
  const gates: (() => void)[] = [];
  const run: RunCommand = async (_call, command) => {
    ran.push(command);
    await new Promise<void>((resolve) => gates.push(resolve));
    return { code: 0, stdout: '', stderr: '' };
  };
  const notify = createNotify('/run/notify', run, silentLogger);
  const first = notify({ READY: '1', STATUS: 'two\nlines' });
  const second = notify({ STOPPING: '1' });
  await settled();
  assert.deepEqual(
    ran.map(({ program, args, env }) => [program, ...args, env]),
    [['systemd-notify', 'READY=1', 'STATUS=two lines', { NOTIFY_SOCKET: '/run/notify' }]],
  );
  gates.shift()?.();
  await first;
  await settled();
  assert.deepEqual(ran[1]?.args, ['STOPPING=1']);
  gates.shift()?.();
  await second;
});

test('a service manager that cannot be told is warned of once, and again after it could', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', format: 'json', write: (line) => lines.push(line) });
  let works = false;
  const run: RunCommand = async () => {
    if (!works) throw new Error('no such program');
    return { code: 0, stdout: '', stderr: '' };
  };
  const notify = createNotify('/run/notify', run, log);
  await notify({ READY: '1' });
  await notify({ WATCHDOG: '1' });
  assert.equal(lines.length, 1);
  works = true;
  await notify({ WATCHDOG: '1' });
  works = false;
  await notify({ WATCHDOG: '1' });
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? '', /no such program/);
});

test('the watchdog is kept quiet at half its time while the check passes, and only then', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const told: Notification[] = [];
  let check: (signal: AbortSignal) => Promise<void> = async () => {};
  const stop = startWatchdog({
    watchdogMs: 20_000,
    notify: async (notification) => void told.push(notification),
    check: (signal) => check(signal),
    log: silentLogger,
  });
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    await settled();
    return told.splice(0);
  };
  assert.deepEqual(await pass(9_999), []);
  assert.deepEqual(await pass(1), [{ WATCHDOG: '1' }]);
  assert.deepEqual(await pass(10_000), [{ WATCHDOG: '1' }]);

  check = () => Promise.reject(new Error('threads are stuck'));
  assert.deepEqual(await pass(10_000), [{ STATUS: 'The self-check failed: threads are stuck' }]);

  let aborted = false;
  check = (signal) =>
    new Promise(() => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
    });
  assert.deepEqual(await pass(10_000), [], 'a check that hangs is not a sign of life');
  assert.deepEqual(await pass(10_000), [{ STATUS: 'The self-check failed: it did not end within 10 s' }]);
  assert.ok(aborted);

  check = async () => {};
  assert.deepEqual(await pass(10_000), [{ WATCHDOG: '1', STATUS: 'Serving again' }]);
  assert.deepEqual(await pass(10_000), [{ WATCHDOG: '1' }]);
  stop();
  assert.deepEqual(await pass(60_000), []);
});

/** Lets everything run that waits for nothing. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
