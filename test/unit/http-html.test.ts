import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAge, formatClock } from '../../src/frontends/http/ages.ts';
import { escaped, html, trusted } from '../../src/frontends/http/html.ts';

test('values are text, unless a template made them', () => {
  const list = ['a<b', '"c"'].map((one) => html`<li title="${one}">${one}</li>`);
  const nothing = [undefined, false as const, ''];
  assert.equal(
    html`<ul>${list}</ul>${nothing}${7}${trusted('<br>')}`.markup,
    '<ul><li title="a&lt;b">a&lt;b</li><li title="&quot;c&quot;">&quot;c&quot;</li></ul>7<br>',
  );
});

test('no text gets out of an element or a quoted attribute, and nothing of it is lost', () => {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const characters = [...text];
      assert.equal(escaped(text), characters.map(escaped).join(''));
      for (const character of characters) {
        const number = `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`;
        const allowed = entities[character] ? [entities[character]] : [character, number];
        assert.ok(allowed.includes(escaped(character)), number);
      }
    }),
    { numRuns: 300 },
  );
});

test('characters that hide or turn others are written out', () => {
  assert.equal(escaped('a\u202egnp.exe'), 'a\\u202egnp.exe');
  assert.equal(escaped('two\nlines\u0000\u200b\ufeff\ud800'), 'two\\u000alines\\u0000\\u200b\\ufeff\\ud800');
  assert.equal(escaped('Müller 東京 🗄'), 'Müller 東京 🗄');
});

test('ages in the units that say most', () => {
  const rows: readonly [number, string][] = [
    [-1, '0 s'],
    [0.449, '0.4 s'],
    [9.99, '9.9 s'],
    [59.9, '59 s'],
    [60, '1 min'],
    [133, '2 min 13 s'],
    [3600, '1 h'],
    [3 * 3600 + 59, '3 h'],
    [86_400 * 12 + 3600 * 5, '12 d 5 h'],
  ];
  for (const [seconds, text] of rows) assert.equal(formatAge(seconds), text);
  assert.equal(formatClock('2025-11-21T04:00:02.271Z'), '2025-11-21 04:00:02 UTC');
});
