import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { parseKnownHosts } from '../../src/backends/ssh/known-hosts.ts';

const key = Buffer.from('the key of a host');
const other = Buffer.from('the key of another');
const line = (hosts: string, of = key) => `${hosts} ssh-ed25519 ${of.toString('base64')} comment`;

function hashed(name: string): string {
  const salt = Buffer.from('12345678901234567890');
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;
}

test('names, ports, patterns, negations and hashes', () => {
  const known = (text: string, host: string, port = 22) => parseKnownHosts(text).check(host, port, key);
  assert.equal(known(line('nas'), 'nas'), 'known');
  assert.equal(known(line('nas'), 'NAS'), 'known');
  assert.equal(known(line('nas,10.0.0.1'), '10.0.0.1'), 'known');
  assert.equal(known(line('nas'), 'nas', 2222), 'unknown');
  assert.equal(known(line('[nas]:2222'), 'nas', 2222), 'known');
  assert.equal(known(line('[fe80::1]:2222'), 'fe80::1', 2222), 'known');
  assert.equal(known(line('*.example.org'), 'nas.example.org'), 'known');
  assert.equal(known(line('*.example.org,!nas.example.org'), 'nas.example.org'), 'unknown');
  assert.equal(known(line('nas?'), 'nas1'), 'known');
  assert.equal(known(line('n.s'), 'nas'), 'unknown');
  assert.equal(known(line(hashed('nas')), 'nas'), 'known');
  assert.equal(known(line(hashed('nas')), 'san'), 'unknown');
  assert.equal(known(`# ${line('nas')}\n\n`, 'nas'), 'unknown');
});

test('another key is a changed one, a revoked one is never good', () => {
  assert.equal(parseKnownHosts(line('nas', other)).check('nas', 22, key), 'changed');
  assert.equal(parseKnownHosts(`${line('nas', other)}\n${line('nas')}`).check('nas', 22, key), 'known');
  assert.equal(parseKnownHosts(`${line('nas')}\n@revoked ${line('*')}`).check('nas', 22, key), 'revoked');
  assert.equal(parseKnownHosts(`@cert-authority ${line('nas')}`).check('nas', 22, key), 'unknown');
  assert.deepEqual(parseKnownHosts(`${line('nas')}\n${line('nas', other)}`).keyTypes('nas', 22), ['ssh-ed25519']);
});
