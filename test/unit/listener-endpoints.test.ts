import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { CallError } from '../../src/core/errors.ts';
import { parseEndpoint } from '../../src/frontends/listener/endpoints.ts';

const good: readonly (readonly [string, object])[] = [
  ['unix:///csi/csi.sock', { kind: 'unix', path: '/csi/csi.sock' }],
  ['unix:/csi/csi.sock', { kind: 'unix', path: '/csi/csi.sock' }],
  ['unix://csi.sock', { kind: 'unix', path: resolve('csi.sock') }],
  ['unix:csi.sock', { kind: 'unix', path: resolve('csi.sock') }],
  ['unix:///a b/ü:9.sock', { kind: 'unix', path: '/a b/ü:9.sock' }],
  ['/run/../run/x.sock', { kind: 'unix', path: '/run/x.sock' }],
  [' /run/x.sock\n', { kind: 'unix', path: '/run/x.sock' }],
  ['tcp://10.0.0.1:9000', { kind: 'tcp', host: '10.0.0.1', port: 9000 }],
  ['nas-1.example.com:0', { kind: 'tcp', host: 'nas-1.example.com', port: 0 }],
  ['[::1]:9000', { kind: 'tcp', host: '::1', port: 9000 }],
  ['tcp://[fe80::1%eth0]:65535', { kind: 'tcp', host: 'fe80::1%eth0', port: 65535 }],
  [':9000', { kind: 'tcp', host: '', port: 9000 }],
  ['*:9000', { kind: 'tcp', host: '', port: 9000 }],
  ['systemd', { kind: 'inherited', name: undefined }],
  ['systemd:csi', { kind: 'inherited', name: 'csi' }],
];

for (const [text, expected] of good) {
  test(`${JSON.stringify(text)} is an endpoint`, () => {
    assert.deepEqual(parseEndpoint(text), { ...expected, text: text.trim() });
  });
}

const bad = [
  ['', /write unix:/],
  ['csi.sock', /write unix:/],
  ['localhost', /write unix:/],
  ['::1:9000', /write unix:/],
  ['[localhost]:9000', /not an IPv6 address/],
  ['[::1]', /write unix:/],
  ['localhost:65536', /at most 65535/],
  ['localhost:-1', /write unix:/],
  ['http://localhost:80', /write unix:/],
  ['tcp://', /write unix:/],
  ['tcp://localhost:80/path', /write unix:/],
  ['unix:', /write unix:/],
  ['unix:///run/', /names a folder/],
  ['/', /names a folder/],
  ['/a\0b', /NUL/],
  ['user@host:80', /write unix:/],
] as const;

for (const [text, why] of bad) {
  test(`${JSON.stringify(text)} is not an endpoint, and the error says so`, () => {
    assert.throws(
      () => parseEndpoint(text),
      (error) =>
        error instanceof CallError &&
        error.code === 'INVALID_ARGUMENT' &&
        error.message.includes(`"${text}"`) &&
        why.test(error.message),
    );
  });
}

test('a unix path may have 107 bytes and no more', () => {
  const path = `/${'ü'.repeat(53)}`;
  assert.equal(Buffer.byteLength(path), 107);
  assert.deepEqual(parseEndpoint(`unix://${path}`), { kind: 'unix', path, text: `unix://${path}` });
  assert.throws(() => parseEndpoint(`${path}x`), /the path has 108 bytes.*107/);
});

test('any text is an endpoint or a CallError that says what was wrong', () => {
  const pieces = fc.constantFrom(
    'unix:',
    'tcp://',
    '//',
    '/',
    ':',
    '[',
    ']',
    '::1',
    '9000',
    'a',
    'systemd',
    '*',
    '\n',
    '\0',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces).map((parts) => parts.join('')),
      ),
      (text) => {
        try {
          const endpoint = parseEndpoint(text);
          assert.equal(endpoint.text, text.trim());
          if (endpoint.kind === 'unix')
            assert.ok(endpoint.path.startsWith('/') && Buffer.byteLength(endpoint.path) <= 107);
          if (endpoint.kind === 'tcp') assert.ok(endpoint.port >= 0 && endpoint.port <= 65_535);
        } catch (error) {
          assert.ok(error instanceof CallError && error.code === 'INVALID_ARGUMENT', String(error));
        }
      },
    ),
    { numRuns: 300 },
  );
});
