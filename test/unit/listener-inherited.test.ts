import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, silentLogger } from '../../src/core/logger.ts';
import { takeInheritedSockets } from '../../src/frontends/listener/inherited.ts';
import { isLoopback, refuseOpenPlaintext } from '../../src/frontends/listener/tcp.ts';

test('inherited sockets are numbered from 3 and named by position', () => {
  const env = { LISTEN_PID: '42', LISTEN_FDS: '3', LISTEN_FDNAMES: 'csi:docker', LISTEN_PIDFDID: '9', HOME: '/' };
  assert.deepEqual(takeInheritedSockets(env, 42), [
    { fd: 3, name: 'csi' },
    { fd: 4, name: 'docker' },
    { fd: 5, name: '' },
  ]);
  assert.deepEqual(env, { HOME: '/' });
});

test('sockets for another process are not taken', () => {
  const env = { LISTEN_PID: '41', LISTEN_FDS: '1' };
  assert.deepEqual(takeInheritedSockets(env, 42), []);
  assert.deepEqual(env, {});
  assert.deepEqual(takeInheritedSockets({}, 42), []);
});

test('a number that is none is an error', () => {
  for (const count of ['', 'x', '-1', '1e3', '99999']) {
    assert.throws(() => takeInheritedSockets({ LISTEN_PID: '1', LISTEN_FDS: count }, 1), /LISTEN_FDS is/, count);
  }
});

test('loopback addresses are known in every form', () => {
  for (const address of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', '::FFFF:127.9.9.9']) {
    assert.ok(isLoopback(address), address);
  }
  for (const address of ['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '::ffff:10.0.0.1', '127.evil.com', '::1:1', '']) {
    assert.ok(!isLoopback(address), address);
  }
});

test('plaintext beyond this host needs TLS or a clear word, and the word is loud', () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', format: 'json', write: (line) => lines.push(line) });
  const flags = /--server-tls-cert.*--server-tls-key.*--server-tls-client-ca.*--allow-insecure-tcp/;
  const refuse = (local: boolean, encrypted: boolean, allowInsecureTcp: boolean) =>
    refuseOpenPlaintext(local, 'tcp://0.0.0.0:1', { encrypted, allowInsecureTcp, log });
  assert.throws(() => refuse(false, false, false), { code: 'FAILED_PRECONDITION', message: flags });
  refuse(true, false, false);
  refuse(false, true, false);
  refuse(false, true, true);
  assert.deepEqual(lines, []);
  refuse(false, false, true);
  assert.match(lines.join(''), /"warn".*INSECURE/);
  assert.equal(silentLogger.enabled('warn'), false);
});
