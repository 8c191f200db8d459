import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { untakenLines } from '../../src/backends/exec/untaken-lines.ts';
import { silentLogger } from '../../src/core/logger.ts';

function cut(chunks: readonly Buffer[], take: (line: string) => boolean): { shown: string[]; kept: string } {
  const shown: string[] = [];
  const kept: Buffer[] = [];
  const lines = untakenLines(
    (line) => {
      shown.push(line);
      return take(line);
    },
    (chunk) => kept.push(chunk),
  );
  for (const chunk of chunks) lines.add(chunk);
  lines.end();
  return { shown, kept: Buffer.concat(kept).toString('utf8') };
}

test('however a stream is cut, every line is shown once and what is not taken is kept', () => {
  const text = fc.array(fc.stringMatching(/^[a-zä€]{0,5}$/), { maxLength: 20 }).map((lines) => lines.join('\n'));
  const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(text, sizes, (all, cuts) => {
      const bytes = Buffer.from(all);
      const chunks: Buffer[] = [];
      for (let at = 0, n = 0; at < bytes.length; n++) {
        const size = cuts[n % cuts.length] ?? 1;
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      const { shown, kept } = cut(chunks, (line) => line.startsWith('a'));
      const lines = all.split('\n');
      assert.deepEqual(
        shown,
        lines.filter((line) => line !== ''),
      );
      const expected = lines.map((line, index) =>
        line.startsWith('a') ? '' : line + (index < lines.length - 1 ? '\n' : ''),
      );
      assert.equal(kept, expected.join(''));
    }),
    { numRuns: 300 },
  );
});

test('a line without an end is passed on, and shown to nobody', () => {
  const long = Buffer.alloc(2 ** 20 + 1, 'x');
  const { shown, kept } = cut([long, Buffer.from('tail\nnext\n')], () => true);
  assert.deepEqual(shown, ['next']);
  assert.equal(kept.length, long.length + 'tail\n'.length);
});

test('lines that are taken do not use up what is kept of the output', async () => {
  const run = createRunner();
  let taken = 0;
  const output = await run(
    { signal: new AbortController().signal, log: silentLogger },
    {
      program: 'sh',
      args: ['-c', 'i=0; while [ $i -lt 500 ]; do echo "progress $i"; i=$((i+1)); done; echo summary'],
      timeoutMs: 30_000,
      keepBytes: 100,
      takeLine: (line) => {
        if (!line.startsWith('progress')) return false;
        taken++;
        return true;
      },
    },
  );
  assert.equal(taken, 500);
  assert.deepEqual(output, { code: 0, stdout: 'summary\n', stderr: '' });
});
