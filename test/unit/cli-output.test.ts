import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { details, table } from '../../src/cli/output/table.ts';
import { formatTime } from '../../src/cli/output/time.ts';
import { collectPairSets, collectPairs } from '../../src/cli/pairs.ts';
import { parseSeconds } from '../../src/cli/parse-seconds.ts';

describe('tables', () => {
  test('columns in line, no frames, nothing behind the last word', () => {
    const rows = [
      ['a', 1],
      ['longer', ''],
    ];
    assert.equal(table(['NAME', 'SIZE'], rows, false), 'NAME     SIZE\na        1\nlonger\n');
  });

  test('several lines in a cell', () => {
    assert.equal(table(['A', 'B'], [['x\ny', 'z']], false), 'A   B\nx   z\ny\n');
  });

  test('a bold head where there are colours', () => {
    assert.equal(table(['A', 'B'], [['x', 'y']], true), '\u001b[1mA\u001b[22m   \u001b[1mB\u001b[22m\nx   y\n');
  });

  test('details leave out what is not known', () => {
    const pairs = [
      ['one', 'a'],
      ['two', undefined],
      ['three', ''],
      ['four', 0],
    ] as const;
    assert.equal(details(pairs, false), 'one    a\nfour   0\n');
    assert.equal(details([], false), '');
  });
});

describe('times', () => {
  const now = new Date(2025, 10, 21, 14, 3, 22).getTime();
  const ago = (ms: number) => /\((.*)\)/.exec(formatTime(new Date(now - ms), now))?.[1];

  test('local, with the age in the one unit that says it best', () => {
    assert.equal(formatTime(new Date(now - 5000), now), '2025-11-21 14:03:17 (5 s ago)');
    const minute = 60_000;
    const rows = [
      [0, '0 s ago'],
      [59_999, '59 s ago'],
      [minute, '1 min ago'],
      [90 * minute, '1 h ago'],
      [47 * 60 * minute, '47 h ago'],
      [48 * 60 * minute, '2 d ago'],
      [-minute, 'in 1 min'],
    ] as const;
    for (const [ms, text] of rows) assert.equal(ago(ms), text);
  });
});

describe('arguments', () => {
  test('pairs are collected; the last of a key counts', () => {
    assert.deepEqual(collectPairs('b=2=3', collectPairs('a=1')), { a: '1', b: '2=3' });
    assert.deepEqual(collectPairs('a=', { a: '1' }), { a: '' });
    assert.deepEqual(collectPairSets('a=1,b=2', [{ c: '3' }]), [{ c: '3' }, { a: '1', b: '2' }]);
    for (const text of ['a', '=1', '']) assert.throws(() => collectPairs(text), { name: 'UsageError' });
  });

  test('a pair that is none is not repeated: it may be a secret', () => {
    assert.throws(
      () => collectPairs('hunter2'),
      (error: Error) => !error.message.includes('hunter2'),
    );
  });

  test('time limits', () => {
    const rows = [
      ['30', 30],
      ['1.5s', 1.5],
      ['5m', 300],
      ['2h', 7200],
    ] as const;
    for (const [text, seconds] of rows) assert.equal(parseSeconds(text), seconds);
    for (const text of ['', '0', '-1', '5 m', '1d', '25h', 'x']) {
      assert.throws(() => parseSeconds(text), { name: 'UsageError' });
    }
  });
});
