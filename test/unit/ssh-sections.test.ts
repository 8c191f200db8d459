import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { readSections } from '../../src/backends/ssh/sections.ts';

const mark = 'a1b2c3d4e5f6';

test('a section is what came before its mark, in whatever pieces', async () => {
  const texts = fc.string({ unit: fc.constantFrom('\n', 'é', '😀', 'a1', `${mark} `, '0', ' ') });
  await fc.assert(
    fc.asyncProperty(
      texts,
      texts,
      fc.nat(255),
      fc.array(fc.nat(40), { maxLength: 12 }),
      async (first, second, code, cuts) => {
        const stream = new PassThrough();
        const sections = readSections(stream, 1000);
        for (const [index, text] of [first, second].entries()) {
          const own = `${mark}${index}`;
          const section = sections.begin(own);
          let rest = Buffer.from(`${text}\n${own} ${code}\n`);
          for (const cut of [...cuts, rest.length]) {
            const piece = rest.subarray(0, cut);
            rest = rest.subarray(cut);
            if (piece.length > 0) stream.write(piece);
            await new Promise((resolve) => setImmediate(resolve));
          }
          assert.equal(await section.end, code);
          assert.equal(section.text(), text);
          assert.equal(section.truncated(), false);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('what comes between sections is nothing; of a long one the beginning is kept', async () => {
  const stream = new PassThrough();
  const sections = readSections(stream, 1000);
  stream.write('welcome to this server\n');
  await new Promise((resolve) => setImmediate(resolve));
  const section = sections.begin(mark);
  for (let count = 0; count < 100; count++) stream.write('x'.repeat(99));
  stream.write(`\n${mark} 7\n`);
  assert.equal(await section.end, 7);
  assert.equal(section.truncated(), true);
  assert.match(section.text(), /^x{1000,1200}$/);
});
