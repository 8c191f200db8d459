import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createFrameFilter } from '../../src/frontends/listener/frames.ts';
import {
  codedPath,
  frame,
  goaway,
  literal,
  message,
  preface,
  requestHeaders,
  settings,
  text,
} from './listener-http2.ts';

function filtered(chunks: readonly Buffer[], dropGoaway = false): Buffer {
  const passed: Buffer[] = [];
  const filter = createFrameFilter({ dropGoaway });
  for (const chunk of chunks) filter(Buffer.from(chunk), (bytes) => void passed.push(Buffer.from(bytes)));
  return Buffer.concat(passed);
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    if (at < bytes.length) chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  if (at < bytes.length) chunks.push(bytes.subarray(at));
  return chunks;
}

const block = (path: string) => requestHeaders(literal(1, text(path)));
const conversation = (path: string, coded: Buffer, end: Buffer = Buffer.alloc(0)) =>
  Buffer.concat([
    preface,
    settings,
    frame(1, 4, 1, block(path)),
    message(1, Buffer.from('/csi/csi.sock is only data here')),
    frame(1, 0x4 | 0x8 | 0x20, 3, Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 15]), block(path), Buffer.from('/x/')])),
    frame(8, 0, 0, Buffer.from([0, 0, 1, 0])),
    frame(1, 0x20, 5, Buffer.concat([Buffer.alloc(5), block(path).subarray(0, 30)])),
    frame(9, 0, 5),
    frame(9, 0, 5, block(path).subarray(30, 31)),
    frame(9, 4, 5, block(path).subarray(31)),
    end,
    frame(1, 4, 7, requestHeaders(literal(1, text(coded, true)))),
    frame(6, 0, 0, Buffer.alloc(8)),
    end,
  ]);

const coded = Buffer.from('588832c4419741c9d7', 'hex');
const sent = conversation('/csi/csi.sock', codedPath, goaway);
const wanted = conversation('-csi-csi.sock', coded, goaway);

test('every request of a connection is mended, and nothing else is changed', () => {
  assert.deepEqual(filtered([sent]), wanted);
});

test('cut in two at any byte, or into single bytes, the outcome is the same', () => {
  for (let at = 1; at < sent.length; at++) assert.deepEqual(filtered(cut(sent, [at])), wanted, `cut at ${at}`);
  assert.deepEqual(filtered(cut(sent, Array(sent.length).fill(1))), wanted);
});

test('GOAWAY is dropped where asked, wherever it is cut', () => {
  const without = conversation('-csi-csi.sock', coded);
  for (let at = 1; at < sent.length; at++) assert.deepEqual(filtered(cut(sent, [at]), true), without, `cut at ${at}`);
  assert.deepEqual(filtered(cut(sent, Array(sent.length).fill(1)), true), without);
});

test('any cutting gives the same outcome', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 })), fc.boolean(), (sizes, drop) => {
      assert.deepEqual(filtered(cut(sent, sizes), drop), filtered([sent], drop));
    }),
    { numRuns: 200 },
  );
});

test('bytes that need no mending are passed on without a copy', () => {
  const chunk = Buffer.concat([preface, settings, message(1, Buffer.alloc(1000))]);
  const passed: Buffer[] = [];
  createFrameFilter({ dropGoaway: true })(chunk, (bytes) => void passed.push(bytes));
  assert.deepEqual(passed, [chunk]);
  assert.equal(passed[0], chunk);
});

test('a large message passes while it arrives', () => {
  const data = frame(0, 0, 1, Buffer.alloc(16_384));
  const passed: number[] = [];
  const filter = createFrameFilter({ dropGoaway: false });
  filter(Buffer.concat([preface, data.subarray(0, 100)]), (bytes) => void passed.push(bytes.length));
  filter(data.subarray(100, 5000), (bytes) => void passed.push(bytes.length));
  assert.deepEqual(passed, [124, 4900]);
});

test('a frame larger than announced ends it', () => {
  for (const type of [0, 1, 4, 9]) {
    const header = frame(type, 4, 1, Buffer.alloc(16_385)).subarray(0, 9);
    assert.throws(() => filtered([preface, header]), /a frame of 16385 bytes/, `type ${type}`);
  }
  assert.equal(filtered([preface, frame(1, 4, 1, Buffer.alloc(16_384))]).length, 24 + 9 + 16_384);
});

test('a header block without end is not collected for ever', () => {
  const more = frame(9, 0, 1, Buffer.alloc(16_000));
  assert.throws(() => filtered([preface, frame(1, 0, 1), ...Array(9).fill(more)]), /header block of more than 131072/);
  const empty = frame(9, 0, 1);
  assert.throws(() => filtered([preface, frame(1, 0, 1), Buffer.concat(Array(15_000).fill(empty))]), /header block/);
});

test('a block interrupted by another frame is handed on as it is', () => {
  const odd = Buffer.concat([preface, frame(1, 0, 1, block('/x')), settings, frame(9, 4, 1, Buffer.alloc(3))]);
  assert.deepEqual(filtered([odd]).length, odd.length);
  assert.deepEqual(filtered(cut(odd, Array(odd.length).fill(1))), filtered([odd]));
});

test('padding and priority that do not fit the frame do no harm', () => {
  for (const flags of [0xc, 0x24, 0x2c]) {
    for (const payload of [[], [200], [1, 2], [0, 0, 0, 0, 0], [255, 0, 0, 0, 0, 0]]) {
      const bytes = Buffer.concat([
        preface,
        frame(1, flags, 1, Buffer.from(payload)),
        frame(0, 0, 1, Buffer.from('/')),
      ]);
      assert.deepEqual(filtered([bytes]), bytes);
    }
  }
});

test('random bytes after the preface pass in order or end it', () => {
  const small = fc
    .tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 50 }))
    .map(([type, flags, payload]) => frame(type, flags, 1, Buffer.from(payload)));
  const piece = fc.oneof(
    small,
    fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 30 })), (pieces, sizes) => {
      const bytes = Buffer.concat([preface, ...pieces]);
      try {
        assert.ok(filtered(cut(bytes, sizes)).length <= bytes.length);
      } catch (error) {
        assert.match(String(error), /a frame of|a header block of/);
      }
    }),
    { numRuns: 300 },
  );
});
