import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailedCall } from '../../src/pipeline/pipeline.ts';
import { createRecentFailures } from '../../src/pipeline/recent-failures.ts';

const failed = (more: Partial<FailedCall>): FailedCall => ({
  method: 'CreateVolume',
  requestId: 'r',
  endedAt: 0,
  seconds: 0,
  summary: {},
  code: 'INTERNAL',
  message: '',
  connection: undefined,
  driver: undefined,
  ...more,
});

test('the last ones, newest first', () => {
  const recent = createRecentFailures(3);
  for (const requestId of ['a', 'b', 'c', 'd', 'e']) recent.add(failed({ requestId }));
  assert.deepEqual(
    recent.list().map(({ requestId }) => requestId),
    ['e', 'd', 'c'],
  );
});

test('names of any length do not stay in memory', () => {
  const recent = createRecentFailures();
  recent.add(failed({ summary: { name: 'x'.repeat(4_000_000) }, message: 'y'.repeat(5000) }));
  const [kept] = recent.list();
  assert.equal(String(kept?.summary.name).length, 1000);
  assert.equal(kept?.message.length, 1000);
});
