import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  answerReader,
  forgetRequest,
  type StarterAnswer,
  startRequest,
} from '../../src/backends/exec/starter-messages.ts';

test('a request says its size, its id, what is started, how it is called, its arguments and its environment', () => {
  const request = startRequest(7, {
    file: 'mount',
    argv0: 'm',
    args: ['-o', 'bind'],
    env: { PATH: '/bin', LC_ALL: 'C' },
  });
  const numbers = [0, 4, 8, 12].map((at) => request?.readUInt32LE(at));
  assert.deepEqual(numbers, [(request?.length ?? 0) - 4, 7, 3, 2]);
  assert.equal(request?.subarray(16).toString(), 'mount\0m\0-o\0bind\0PATH=/bin\0LC_ALL=C\0');
  assert.deepEqual([...forgetRequest(7)], [12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
});

test('what does not fit into a request is none', () => {
  const start = (args: string[]) => startRequest(1, { file: 'true', args, env: {} });
  assert.equal(start(['x'.repeat(70_000)]), undefined);
  assert.equal(start(Array(1001).fill('')), undefined);
  assert.equal(start(['a\0b']), undefined);
  assert.ok(start(['']));
});

const id = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const answers: fc.Arbitrary<{ answer: StarterAnswer; wire: Buffer }> = fc.oneof(
  fc.record({ id, pid: id }).map(({ id, pid }) => told({ kind: 'started', id, pid }, 1, number(pid))),
  fc.record({ id, errno: id }).map(({ id, errno }) => told({ kind: 'failed', id, errno }, 2, number(errno))),
  fc.record({ id, bytes }).map(({ id, bytes }) => told({ kind: 'stdout', id, bytes }, 3, bytes)),
  fc.record({ id, bytes }).map(({ id, bytes }) => told({ kind: 'stderr', id, bytes }, 4, bytes)),
  fc.record({ id, status: id }).map(({ id, status }) => told({ kind: 'ended', id, status }, 5, number(status))),
  id.map((id) => told({ kind: 'closed', id }, 6, Buffer.alloc(0))),
);

function told(answer: StarterAnswer, kind: number, rest: Buffer) {
  return { answer, wire: Buffer.concat([number(8 + rest.length), number(answer.id), number(kind), rest]) };
}

function number(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}

test('answers are read whole from whatever pieces they come in', () => {
  fc.assert(
    fc.property(fc.array(answers, { maxLength: 8 }), fc.array(fc.nat(60), { maxLength: 20 }), (all, cuts) => {
      const wire = Buffer.concat(all.map((one) => one.wire));
      const seen: StarterAnswer[] = [];
      const read = answerReader((answer) => {
        seen.push('bytes' in answer ? { ...answer, bytes: Buffer.from(answer.bytes) } : answer);
      });
      let at = 0;
      for (const cut of cuts) {
        read(wire.subarray(at, at + cut));
        at += cut;
      }
      read(wire.subarray(at));
      assert.deepEqual(
        seen,
        all.map((one) => one.answer),
      );
    }),
    { numRuns: 200 },
  );
});
