// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that are expanded
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { expandVariables } from '../../src/config/expand.ts';

const env = {
  A: 'x',
  PORT: '22',
  YES: 'true',
  MODE: '0777',
  LIST: '["a", "b"]',
  NESTED: '$A',
  NULL: 'null',
  EMPTY: '',
};

const cases: readonly (readonly [string, unknown])[] = [
  ['$A', 'x'],
  ['${A}', 'x'],
  ['pre-${A}post-$A.end', 'pre-xpost-x.end'],
  ['$PORT', 22],
  ['${PORT}00', 2200],
  ['$YES', true],
  ['$MODE', '0777'],
  ['$LIST', ['a', 'b']],
  ['$NESTED', '$A'],
  ['$NULL', 'null'],
  ['$EMPTY', ''],
  ['$UNSET', ''],
  ['a${UNSET}b', 'ab'],
  ['22', '22'],
  ['true', 'true'],
  ['$$A', '$A'],
  ['$$$A', '$x'],
  ['$$', '$'],
  ['zone-${match:1}', 'zone-${match:1}'],
  ['^node-(.*)$', '^node-(.*)$'],
  ['cost $5 ${} $', 'cost $5 ${} $'],
];
for (const [template, expected] of cases) {
  test(`${template} becomes ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(expandVariables({ k: [template] }, env).value, { k: [expected] });
  });
}

test('keys are never expanded, other values are left alone', () => {
  const value = { $A: 1, b: [true, null, 1.5, { $PORT: '$PORT' }] };
  assert.deepEqual(expandVariables(value, env).value, { $A: 1, b: [true, null, 1.5, { $PORT: 22 }] });
});

test('unset variables are reported where they are mentioned', () => {
  const { unset } = expandVariables({ a: { b: ['$ONE', 'x${TWO}$A'] } }, env);
  assert.deepEqual(unset, [
    { path: ['a', 'b', 0], variable: 'ONE' },
    { path: ['a', 'b', 1], variable: 'TWO' },
  ]);
});

test('names of Object.prototype are not variables', () => {
  assert.equal(expandVariables({ a: '$constructor' }, {}).unset.length, 1);
});

test('property: values without a dollar stay as they are', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value).replaceAll('$', '%'));
      assert.deepEqual(expandVariables(plain, env), { value: plain, expanded: new Map(), unset: [] });
    }),
    { numRuns: 200 },
  );
});

test('property: a text with its dollars doubled expands to itself', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.equal(
        expandVariables(
          text.replaceAll('$', () => '$$'),
          env,
        ).value,
        text,
      );
    }),
    { numRuns: 200 },
  );
});
