import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { redacted, secret } from '../../src/config/secret.ts';

const login = v.variant('type', [
  v.object({ type: v.literal('password'), value: secret(v.string()) }),
  v.object({ type: v.literal('name'), value: v.string() }),
]);
const schema = v.object({
  driver: v.string(),
  password: v.optional(secret(v.pipe(v.string(), v.minLength(1)))),
  wrapped: secret(v.optional(v.string())),
  piped: v.optional(v.pipe(secret(v.string()), v.minLength(1))),
  logins: v.optional(v.array(login)),
  env: v.optional(secret(v.record(v.string(), v.string()))),
  tokens: v.optional(v.record(v.string(), secret(v.string()))),
  either: v.optional(v.union([v.string(), v.object({ key: secret(v.string()) })])),
  later: v.optional(v.lazy(() => v.object({ key: secret(v.string()) }))),
  free: v.optional(v.record(v.string(), v.unknown())),
});

test('marked values are hidden, all others shown', () => {
  const value = {
    driver: 'd',
    password: 'hunter2',
    wrapped: 'hunter2',
    piped: 'hunter2',
    logins: [
      { type: 'password', value: 'hunter2' },
      { type: 'name', value: 'shown' },
    ],
    env: { A: 'hunter2' },
    tokens: { a: 'hunter2', b: 'hunter2' },
    either: { key: 'hunter2' },
    later: { key: 'hunter2' },
    free: { a: [1, { b: 'shown' }] },
    pasword: 'hunter2',
  };
  const before = structuredClone(value);
  assert.deepEqual(redacted(schema, value), {
    driver: 'd',
    password: '***',
    wrapped: '***',
    piped: '***',
    logins: [
      { type: 'password', value: '***' },
      { type: 'name', value: 'shown' },
    ],
    env: '***',
    tokens: { a: '***', b: '***' },
    either: { key: '***' },
    later: { key: '***' },
    free: { a: [1, { b: 'shown' }] },
    pasword: '***',
  });
  assert.deepEqual(value, before);
  assert.equal((redacted(schema, { driver: 'd', either: 'text' }) as { either: string }).either, 'text');
});

test('secrets of the wrong type are hidden too', () => {
  const value = { driver: 'd', password: 12345, tokens: { a: ['hunter2'] } };
  assert.deepEqual(redacted(schema, value), { driver: 'd', password: '***', tokens: { a: '***' } });
});

test('a marked schema validates as before', () => {
  assert.equal(v.parse(secret(v.string()), 'x'), 'x');
  assert.equal(v.is(secret(v.string()), 1), false);
});
