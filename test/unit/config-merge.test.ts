import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergeUnder, withoutNulls } from '../../src/config/merge.ts';

test('maps are merged at every depth, lists and other values replaced', () => {
  const over = { a: { b: 1, list: [1] }, gone: null };
  const under = { a: { b: 2, c: 3, list: [7, 8, 9] }, gone: 4, d: 5 };
  assert.deepEqual(mergeUnder(over, under), { a: { b: 1, c: 3, list: [1] }, gone: null, d: 5 });
});

test('something that is no map is not merged into one', () => {
  assert.deepEqual(mergeUnder({ a: 'x' }, { a: { b: 1 } }), { a: 'x' });
  assert.deepEqual(mergeUnder({ a: { b: 1 } }, { a: 'x' }), { a: { b: 1 } });
  assert.deepEqual(mergeUnder({ a: 1 }, undefined), { a: 1 });
});

test('keys without a value are keys that are not set', () => {
  assert.deepEqual(withoutNulls({ a: null, b: { c: null, d: [null, { e: null }] } }), { b: { d: [null, {}] } });
});

test('property: what the upper file says stands', () => {
  const maps = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(maps, maps, (over, under) => {
      const merged = mergeUnder(over, under);
      assert.deepEqual(mergeUnder(over, merged), merged);
      assert.deepEqual(
        leaves(over).filter((leaf) => !has(merged, leaf)),
        [],
      );
    }),
    { numRuns: 200 },
  );
});

type Leaf = readonly [readonly string[], unknown];

/** Everything in a value that is not a map, with its path. */
function leaves(value: unknown, path: readonly string[] = []): readonly Leaf[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, value]];
  return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]));
}

function has(value: unknown, [path, leaf]: Leaf): boolean {
  let item = value;
  for (const key of path) {
    if (typeof item !== 'object' || item === null || !Object.hasOwn(item, key)) return false;
    item = (item as Record<string, unknown>)[key];
  }
  return JSON.stringify(item) === JSON.stringify(leaf);
}
