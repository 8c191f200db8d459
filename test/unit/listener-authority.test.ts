import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mendAuthority } from '../../src/frontends/listener/authority.ts';
import { decodeHuffman } from '../../src/frontends/listener/huffman.ts';
import { codedPath, literal, named, requestHeaders, text } from './listener-http2.ts';

const decoded = (hex: string) =>
  decodeHuffman(Buffer.from(hex, 'hex'))
    ?.map(({ character }) => character)
    .join('');

function mended(block: Buffer): Buffer | undefined {
  const copy = Buffer.from(block);
  return mendAuthority(copy) ? copy : undefined;
}

test('Huffman: the examples of RFC 7541, appendix C', () => {
  assert.equal(decoded('f1e3c2e5f23a6ba0ab90f4ff'), 'www.example.com');
  assert.equal(decoded('d07abe941054d444a8200595040b8166e082a62d1bff'), 'Mon, 21 Oct 2013 20:13:21 GMT');
  assert.equal(
    decoded('94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007'),
    'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  );
});

test('Huffman: a character outside the known part is no answer', () => {
  assert.equal(decoded('607fffc23f'), undefined);
});

test('a path in plain text becomes an authority of the same length', () => {
  assert.deepEqual(
    mended(requestHeaders(literal(1, text('/run/a b@ü')))),
    requestHeaders(literal(1, text(Buffer.from('-run-a-b~--')))),
  );
});

test('a path under the Huffman code becomes an authority of the same length', () => {
  assert.deepEqual(
    mended(requestHeaders(literal(1, text(codedPath, true)))),
    requestHeaders(literal(1, text(Buffer.from('588832c4419741c9d7', 'hex'), true))),
  );
  const all = Buffer.from('62cb6a606a47fe13ff527fc2ff32ff', 'hex');
  const block = Buffer.from(literal(1, text(all, true)));
  assert.ok(mendAuthority(block));
  assert.deepEqual(block.subarray(2), Buffer.from('5acb6a586b47fc13ffb27fb2ff12ff', 'hex'));
  assert.equal(decoded(block.subarray(2).toString('hex')), '-run-a-b!c~d+e!f');
});

test('every way to write the field is found', () => {
  const path = text('/x');
  const codedName = text(Buffer.from('b83b5339ec327d7f', 'hex'), true);
  for (const head of ['41', '01', '11']) {
    const block = Buffer.concat([Buffer.from([0x3f, 0xe1, 0x1f, 0x82, 0xff, 0x10]), Buffer.from(head, 'hex'), path]);
    assert.equal(mended(block)?.subarray(-2).toString(), '-x', head);
  }
  for (const head of ['40', '00', '10']) {
    for (const name of [text(':authority'), codedName]) {
      const block = Buffer.concat([Buffer.from(head, 'hex'), name, path]);
      assert.equal(mended(block)?.subarray(-2).toString(), '-x', head);
    }
  }
});

test('nothing else is touched', () => {
  for (const authority of ['localhost', '127.0.0.1:9000', '[::1]:9000', '%2Fcsi%2Fcsi.sock', 'a_b~c', '']) {
    assert.equal(mended(requestHeaders(literal(1, text(authority)))), undefined, authority);
  }
  assert.equal(
    mended(Buffer.concat([literal(4, text('/a/b')), named('x-path', '/a b'), named(':path', '/x')])),
    undefined,
  );
});

test('a value that cannot be mended in place is left as it is', () => {
  const unknown = Buffer.from('607fffc23f', 'hex');
  assert.equal(mended(literal(1, text(unknown, true))), undefined);
});

test('any bytes keep their length, and a block mended once needs no more', () => {
  const field = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => literal(1, text(Buffer.from(bytes), true))),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => literal(1, text(Buffer.from(bytes)))),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(fc.array(field, { maxLength: 5 }), (fields) => {
      const block = Buffer.concat(fields);
      const { length } = block;
      mendAuthority(block);
      assert.equal(block.length, length);
      assert.equal(mendAuthority(block), false);
    }),
    { numRuns: 300 },
  );
});
