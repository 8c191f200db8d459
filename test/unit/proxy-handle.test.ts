import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { connectionNameOf, isConnectionName } from '../../src/proxy/connection-name.ts';
import { hasControlCharacters } from '../../src/proxy/control-characters.ts';
import { assertHandleFits, decodeHandle, encodeHandle, idBytesBehind, requireHandle } from '../../src/proxy/handle.ts';
import { failsWith } from './proxy-stand-ins.ts';

const nameCharacters = [...'abcXYZ019._-'];
const connectionName = fc
  .tuple(
    fc.constantFrom(...'abcXYZ019'),
    fc.array(fc.constantFrom(...nameCharacters), { maxLength: 62 }).map((rest) => rest.join('')),
  )
  .map(([first, rest]) => first + rest);

test('a handle comes apart into what it was made of', () => {
  const id = fc
    .string({ minLength: 1, maxLength: 200, unit: 'grapheme' })
    .filter((text) => Buffer.byteLength(text) < 900 && !hasControlCharacters(text))
    .filter((text) => !text.split('/').some((step) => step === '.' || step === '..'));
  fc.assert(
    fc.property(
      fc.constantFrom('volume' as const, 'snapshot' as const),
      connectionName,
      id,
      (kind, connection, inner) => {
        const handle = encodeHandle(kind, connection, inner);
        assert.deepEqual(decodeHandle(kind, handle), { connection, id: inner });
        assert.equal(decodeHandle(kind === 'volume' ? 'snapshot' : 'volume', handle), undefined);
      },
    ),
    { numRuns: 300 },
  );
});

test('whatever text decodes gives a name that stays in the folder and an id without steps upwards', () => {
  const hostile = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc
      .array(fc.constantFrom('v:', 's:', '/', '..', '.', 'nas', '\0', '\n', '%2e', '\\', ':', '@', ' '), {
        maxLength: 12,
      })
      .map((pieces) => pieces.join('')),
  );
  fc.assert(
    fc.property(hostile, (text) => {
      const handle = decodeHandle('volume', text);
      if (!handle) return;
      assert.ok(isConnectionName(handle.connection));
      assert.ok(!handle.connection.includes('/') && !handle.connection.startsWith('.'));
      assert.ok(!handle.id.split('/').includes('..'));
      assert.equal(encodeHandle('volume', handle.connection, handle.id), text);
    }),
    { numRuns: 300 },
  );
});

test('text that was never given out is no handle', () => {
  const wrong = [
    '',
    'v',
    'v:',
    'v:nas',
    'v:nas/',
    'v:/x',
    'x:nas/y',
    'V:nas/y',
    'nas/y',
    ' v:nas/y',
    's:nas/y',
    'v:../../etc/passwd',
    'v:..',
    'v:../x',
    'v:.hidden/x',
    'v:nas/..',
    'v:nas/a/../b',
    'v:nas/./b',
    'v:na\0s/x',
    'v:nas/x\0',
    'v:nas/x\n',
    `v:${'n'.repeat(64)}/x`,
    `v:nas/${'x'.repeat(10_240)}`,
    'v:nä/x',
    'v:n s/x',
  ];
  for (const text of wrong) {
    assert.equal(decodeHandle('volume', text), undefined, JSON.stringify(text));
    assert.throws(() => requireHandle('volume', text), failsWith('NOT_FOUND', /^.{1,200}$/));
  }
});

test('handles longer than may be made are still understood, up to a bound', () => {
  const long = `v:nas/${'x'.repeat(1018)}`;
  assert.equal(long.length, 1024);
  assert.equal(decodeHandle('volume', long)?.id.length, 1018);
  assert.equal(decodeHandle('volume', `${long}x`), undefined);
  assert.equal(decodeHandle('volume', `v:nas/${'ä'.repeat(510)}`), undefined);
});

test('ids with slashes and odd characters of real drivers survive', () => {
  for (const id of [
    '/lun/6f/71',
    'vol@snap',
    'vol/snap',
    'snapshot_driver=filecopy&snapshot_id=v1-s1',
    'a..b',
    '...',
    'x y',
  ]) {
    assert.deepEqual(decodeHandle('snapshot', `s:a..b/${id}`), { connection: 'a..b', id });
  }
});

test('a new handle may have 128 bytes; the message names both lengths', () => {
  assert.equal(idBytesBehind('nas'), 122);
  assertHandleFits('volume', 'nas', 'x'.repeat(122));
  assert.throws(
    () => assertHandleFits('volume', 'nas', 'x'.repeat(123)),
    failsWith(
      'INVALID_ARGUMENT',
      /129 bytes \(123 of the name, 6 for the connection\).*at most 128 .*at most 122 bytes/,
    ),
  );
  assert.throws(() => assertHandleFits('snapshot', 'nas', 'ä'.repeat(62)), failsWith('INVALID_ARGUMENT', /130 bytes/));
});

test('connection files', () => {
  assert.equal(connectionNameOf('nas.yaml'), 'nas');
  assert.equal(connectionNameOf('a..b.yaml'), 'a..b');
  for (const file of [
    'nas.yml',
    '.yaml',
    '..data',
    '.nas.yaml',
    'nas.yaml~',
    'nas.yaml.swp',
    'n s.yaml',
    `${'n'.repeat(64)}.yaml`,
  ]) {
    assert.equal(connectionNameOf(file), undefined, file);
  }
});
