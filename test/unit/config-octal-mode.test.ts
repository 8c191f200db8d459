import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { octalMode } from '../../src/config/octal-mode.ts';

for (const [written, mode] of [
  ['0777', 0o777],
  ['777', 0o777],
  ['0o777', 0o777],
  ['1777', 0o1777],
  ['0', 0],
  [777, 0o777],
  [750, 0o750],
] as const) {
  test(`${JSON.stringify(written)} is mode ${mode.toString(8)}`, () => {
    assert.equal(v.parse(octalMode(), written), mode);
  });
}

for (const written of ['', '0888', 'rwx', '77777', 1.5, -1, 800, true, '0x1ff']) {
  test(`${JSON.stringify(written)} is no mode`, () => {
    assert.equal(v.is(octalMode(), written), false);
  });
}
