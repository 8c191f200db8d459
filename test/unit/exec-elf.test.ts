import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { readElf } from '../../src/backends/exec/elf.ts';
import { elfFile, makeRoot } from './exec-fake-root.ts';

const name = fc.stringMatching(/^[a-z][a-z0-9.+-]{0,15}$/);

test('what a program needs is read from its headers, of any word size and byte order', async (t) => {
  const root = await makeRoot(t, {});
  const path = join(root, 'program');
  const elf = fc.record(
    {
      interpreter: name.map((one) => `/lib/${one}`),
      needed: fc.uniqueArray(name, { maxLength: 4 }),
      runPath: fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.map((one) => `/r/${one}`).join(':')),
      bits: fc.constantFrom(32 as const, 64 as const),
      littleEndian: fc.boolean(),
      processor: fc.constantFrom(62, 183, 40),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(elf, async (one) => {
      await writeFile(path, elfFile(one));
      const read = await readElf(path);
      assert.equal(read?.interpreter, one.interpreter);
      assert.deepEqual(read?.needed, one.needed ?? []);
      assert.deepEqual(read?.runPath, one.runPath?.split(':') ?? []);
    }),
    { numRuns: 100 },
  );
});

test('machines differ by word size, byte order and processor', async (t) => {
  const root = await makeRoot(t, { a: {}, b: { bits: 32 }, c: { littleEndian: false }, d: { processor: 183 }, e: {} });
  const machines = await Promise.all(
    ['a', 'b', 'c', 'd', 'e'].map(async (one) => (await readElf(join(root, one)))?.machine),
  );
  assert.equal(new Set(machines).size, 4);
  assert.equal(machines[0], machines[4]);
});

test('a real program of this machine has a loader and needs a C library', async () => {
  const read = await readElf('/bin/sh');
  assert.match(read?.interpreter ?? '', /ld-/);
  assert.ok(read?.needed.some((one) => one.startsWith('libc.')));
});

test('no content makes reading throw or hang', async (t) => {
  const root = await makeRoot(t, { script: '#!/bin/sh\n' });
  assert.equal(await readElf(join(root, 'script')), undefined);
  const whole = elfFile({ interpreter: '/lib/ld.so', needed: ['libc.so.6'], runPath: '$ORIGIN' });
  const path = join(root, 'damaged');
  const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(damage, fc.nat(whole.length), async (bytes, length) => {
      const file = Buffer.from(whole.subarray(0, length));
      for (const [at, value] of bytes) if (at >= 4 && at < length) file[at] = value;
      await writeFile(path, file);
      await readElf(path);
    }),
    { numRuns: 300 },
  );
});
