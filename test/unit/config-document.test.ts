import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestPosition, readDocument } from '../../src/config/document.ts';
import { ConfigError, formatProblem } from '../../src/config/problem.ts';

/** The formatted problems of a text that is no usable document. */
function problemsOf(text: string): readonly string[] {
  try {
    readDocument(text, 'f.yaml');
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems.map(formatProblem);
  }
  assert.fail(`accepted: ${text.slice(0, 100)}`);
}

test('plain values by the core schema of YAML 1.2', () => {
  const { value } = readDocument(
    'a: 1\nb: yes\nc: true\nd: "1"\ne:\nf: [1, {x: ~}]\n7: seven\ng: 2001-01-01\nh: on',
    'f',
  );
  assert.deepEqual(value, {
    '7': 'seven',
    a: 1,
    b: 'yes',
    c: true,
    d: '1',
    e: null,
    f: [1, { x: null }],
    g: '2001-01-01',
    h: 'on',
  });
});

test('positions of keys and values', () => {
  const document = readDocument('driver: x\nzfs:\n  cli:\n    sudo: maybe\nlist:\n  - a: 1\n  - "b"\n', 'f');
  assert.deepEqual(document.keyAt(['zfs', 'cli', 'sudo']), { line: 4, column: 5 });
  assert.deepEqual(document.valueAt(['zfs', 'cli', 'sudo']), { line: 4, column: 11 });
  assert.deepEqual(document.keyAt(['list', 0, 'a']), { line: 6, column: 5 });
  assert.deepEqual(document.valueAt(['list', 1]), { line: 7, column: 5 });
  assert.equal(document.keyAt(['zfs', 'nothing']), undefined);
  assert.deepEqual(nearestPosition(document, ['zfs', 'cli', 'missing']), { line: 3, column: 3 });
  assert.deepEqual(nearestPosition(document, ['missing']), { line: 1, column: 1 });
});

test('paths with dots in keys are not confused', () => {
  const document = readDocument('a.b: 1\na:\n  b: 2\n', 'f');
  assert.deepEqual(document.keyAt(['a.b']), { line: 1, column: 1 });
  assert.deepEqual(document.keyAt(['a', 'b']), { line: 3, column: 3 });
});

test('numbers remember how they are written, and octal notation stays text', () => {
  const document = readDocument('a: 0777\nb: 0o777\nc: 12345678901234567890\nd: 1.50', 'f');
  assert.deepEqual(document.value, { a: 777, b: '0o777', c: Number('12345678901234567890'), d: 1.5 });
  assert.equal(document.writtenAt(['a']), '0777');
  assert.equal(document.writtenAt(['c']), '12345678901234567890');
  assert.equal(document.writtenAt(['d']), '1.50');
});

test('anchors, aliases and merge keys', () => {
  const text =
    'base: &b {x: 1, y: 1}\nother: &o {y: 2, z: 2}\nd:\n  y: 3\n  <<: [*b, *o]\ne: *b\nf: {<<: *o, "<<": text}';
  const document = readDocument(text, 'f');
  assert.deepEqual(document.value, {
    base: { x: 1, y: 1 },
    other: { y: 2, z: 2 },
    d: { y: 3, x: 1, z: 2 },
    e: { x: 1, y: 1 },
    f: { y: 2, z: 2, '<<': 'text' },
  });
  assert.deepEqual(document.keyAt(['d', 'x']), { line: 1, column: 11 });
});

test('an alias stands for the last anchor of its name before it', () => {
  const { value } = readDocument('a: &x 1\nb: {c: &y [*x]}\nd: &x 2\ne: *y\nf: *x', 'f');
  assert.deepEqual(value, { a: 1, b: { c: [1] }, d: 2, e: [2], f: 2 });
});

test('a key named __proto__ is a key like any other', () => {
  const { value } = readDocument('__proto__: {polluted: true}\n', 'f');
  assert.deepEqual(Object.keys(value), ['__proto__']);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

const unusable: readonly (readonly [string, string, RegExp])[] = [
  ['an empty file', '', /^f\.yaml:1:1: error: the file is empty/],
  ['only comments', '# nothing\n', /the file is empty/],
  ['only null', '---\n~\n', /the file is empty/],
  ['a list', '- a\n- b\n', /^f\.yaml:1:1: error: expected a map/],
  ['a text', '\njust text\n', /^f\.yaml:2:1: error: expected a map/],
  ['two documents', 'a: 1\n---\nb: 2\n', /^f\.yaml:2:1: error: a second document/],
  ['a duplicate key', 'a: 1\nb:\n  c: 1\n  c: 2\n', /^f\.yaml:4:3: error: the key c is already on line 3 in b$/],
  ['duplicates of different types', '1: a\n"1": b\n', /^f\.yaml:2:1: error: the key \["1"\] is already on line 1$/],
  ['tabs', 'a:\n\tb: 1\n', /^f\.yaml:2:\d: error: (tabs|not valid)/],
  ['wrong indentation', 'a:\n    b: 1\n  c: 2\n', /^f\.yaml:3:/],
  ['a missing colon', 'a: 1\nhost nas1\nb: 2\n', /expected "key: value": a colon is missing/],
  ['an unclosed quote', 'a: "x\nb: 1\n', /f\.yaml:\d+:\d+: error: not valid YAML: missing closing "quote/],
  ['an unclosed list', 'a: [1, 2\nb: 1\n', /^f\.yaml:2:1: error: /],
  ['an unknown alias', 'a: *nowhere\n', /^f\.yaml:1:4: error: no anchor &nowhere before this alias$/],
  ['an alias before its anchor', 'a: *x\nb: &x 1\n', /no anchor &x before/],
  ['an alias within its own anchor', 'a: &a\n  b: [*a]\n', /^f\.yaml:2:7: error: the alias \*a stands for itself$/],
  ['a map merged into itself', 'a: &a\n  <<: *a\n', /the alias \*a stands for itself/],
  ['merging a text', 'a: &a text\nb:\n  <<: *a\n', /only maps can be merged/],
  ['an unknown tag', 'a: !ruby/object x\n', /^f\.yaml:1:4: error: .*tag/],
  ['a list as a key', '? [a, b]\n: 1\n', /a key must be a text/],
];
for (const [name, text, expected] of unusable) {
  test(`not a document: ${name}`, () => {
    assert.match(problemsOf(text)[0] ?? '', expected);
  });
}

test('syntax errors never quote the values of the file', () => {
  const texts = [
    'a: |x-hunter2\n  b\n',
    'password: "hunter2\\q"\n',
    'a: 1\n  hunter2\nb: {hunter2',
    'p: @hunter2\n',
    'k: `hunter2\n',
  ];
  for (const text of texts) assert.doesNotMatch(problemsOf(text).join(), /hunter2/);
});

test('nested aliases are bounded', () => {
  const laughs = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let level = 1; level < 12; level++) {
    laughs.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')}]`);
  }
  assert.match(problemsOf(laughs.join('\n'))[0] ?? '', /more than 50000 values, with all aliases expanded/);
  const merges = ['m0: &m0 {k: 1}'];
  for (let level = 1; level < 12; level++) {
    merges.push(`m${level}: &m${level} {<<: [${Array.from({ length: 10 }, () => `*m${level - 1}`).join(', ')}]}`);
  }
  assert.match(problemsOf(merges.join('\n'))[0] ?? '', /more than 50000 values/);
});

test('nesting is bounded', () => {
  for (const depth of [100, 100_000]) {
    assert.match(problemsOf(`a: ${'['.repeat(depth)}${']'.repeat(depth)}`)[0] ?? '', /nested (too deeply|deeper than)/);
  }
});
