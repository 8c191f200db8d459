import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberOf, ownValue, parseJson, parseText, valueIn } from '../../src/backends/zfs/dataset.ts';
import { failureKind } from '../../src/backends/zfs/failure.ts';
import { CallError } from '../../src/core/errors.ts';

test('what `zfs get -j -p` prints', () => {
  const text = JSON.stringify({
    output_version: { command: 'zfs get', vers_major: 0, vers_minor: 1 },
    datasets: {
      'tank/v/a': {
        name: 'tank/v/a',
        type: 'FILESYSTEM',
        pool: 'tank',
        properties: {
          mountpoint: { value: '/tank/v/a', source: { type: 'INHERITED', data: 'tank' } },
          refquota: { value: '1073741824', source: { type: 'LOCAL', data: '-' } },
          'x:y': { value: 'a\tb\nc', source: { type: 'RECEIVED', data: '-' } },
          'x:none': { value: '-', source: { type: 'LOCAL', data: '-' } },
        },
      },
    },
  });
  const [dataset] = parseJson(text);
  assert.ok(dataset);
  assert.equal(dataset.type, 'filesystem');
  assert.equal(valueIn(dataset, 'mountpoint'), '/tank/v/a');
  assert.equal(ownValue(dataset, 'mountpoint'), undefined);
  assert.equal(ownValue(dataset, 'x:y'), 'a\tb\nc');
  assert.equal(valueIn(dataset, 'x:none'), undefined);
  assert.equal(numberOf(dataset, 'refquota'), 2 ** 30);
  assert.throws(
    () => parseJson('Segmentation fault'),
    (error) => error instanceof CallError && error.code === 'UNAVAILABLE',
  );
});

test('what `zfs get -Hp` prints: values may have tabs and lines in them', () => {
  const text = [
    'tank/v/a\ttype\tfilesystem\t-',
    'tank/v/a\tmountpoint\t/tank/v/a\tinherited from tank',
    'tank/v/a\tx:y\ta\tb',
    'c\tlocal',
    'tank/v/a\tvolsize\t-\t-',
    'tank/v/a@s\ttype\tsnapshot\t-',
    'tank/v/a@s\tx:y\t-\t-',
    '',
  ].join('\n');
  const [dataset, snapshot] = parseText(text, ['type', 'mountpoint', 'x:y', 'volsize']);
  assert.ok(dataset && snapshot);
  assert.equal(ownValue(dataset, 'x:y'), 'a\tb\nc');
  assert.equal(dataset.properties.mountpoint?.source, 'inherited');
  assert.equal(numberOf(dataset, 'volsize'), undefined);
  assert.equal(snapshot.type, 'snapshot');
  assert.deepEqual(Object.keys(snapshot.properties), ['type']);
});

test('what went wrong is told apart by what was said', () => {
  const kinds = {
    "cannot create 'tank/v/a': dataset already exists": 'exists',
    "cannot open 'tank/nosuch': dataset does not exist": 'missing',
    "cannot destroy 'tank/v/a': filesystem has children\nuse '-r' to destroy": 'has-children',
    "cannot destroy 'tank/v/a@s1': snapshot has dependent clones": 'has-clones',
    "cannot destroy 'tank/v/a': dataset is busy": 'busy',
    "cannot create 'tank/v/a': out of space": 'no-space',
    "cannot create 'tank/v/a': pool I/O is currently suspended": 'suspended',
    "cannot create 'tank/v/a': permission denied": 'refused',
    'sudo: a password is required': 'refused',
    'internal error: Cannot allocate memory': 'other',
  };
  for (const [stderr, kind] of Object.entries(kinds)) assert.equal(failureKind({ code: 1, stdout: '', stderr }), kind);
  assert.equal(failureKind({ code: 127, stdout: '', stderr: 'sh: 1: /sbin/zfs: not found' }), 'no-program');
});
