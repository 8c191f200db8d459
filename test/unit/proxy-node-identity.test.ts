import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { NodeIdOptions } from '../../src/proxy/config.ts';
import { hasControlCharacters } from '../../src/proxy/control-characters.ts';
import { nodeAddress } from '../../src/proxy/node-address.ts';
import { decodeNodeId, encodeNodeId } from '../../src/proxy/node-identity.ts';
import { failsWith } from './proxy-stand-ins.ts';

const iqn = 'iqn.1993-08.org.debian:01:5a4f';
const nqn = 'nqn.2014-08.org.nvmexpress:uuid:6f71';

const all: NodeIdOptions = {
  parts: { nodeName: true, hostname: true, iqn: true, nqn: true },
  iqnPrefix: [
    { shortName: 'd', prefix: 'iqn.1993-08.org.debian:01:' },
    { shortName: 'r1', prefix: 'iqn.1994-05.com.redhat:' },
  ],
  nqnPrefix: [{ shortName: '1', prefix: 'nqn.2014-08.org.nvmexpress:uuid:' }],
};
const nameOnly: NodeIdOptions = {
  parts: { nodeName: true, hostname: false, iqn: false, nqn: false },
  iqnPrefix: [],
  nqnPrefix: [],
};
const node = { nodeName: 'node-1', hostname: 'host-1', iqn, nqn };

test('the parts are written in order, with short names for long beginnings', () => {
  assert.equal(encodeNodeId(all, node), 'n=node-1/h=host-1/id=5a4f/v1=6f71');
  assert.equal(encodeNodeId(nameOnly, node), 'n=node-1');
});

test('a node id comes apart into what it was made of', () => {
  const word = fc
    .string({ minLength: 1, maxLength: 20 })
    .filter((text) => !text.includes('/') && !hasControlCharacters(text));
  fc.assert(
    fc.property(
      word,
      word,
      word,
      word,
      fc.record({ nodeName: fc.boolean(), hostname: fc.boolean(), iqn: fc.boolean(), nqn: fc.boolean() }),
      fc.constantFrom(...all.iqnPrefix),
      (nodeName, hostname, iqnRest, nqnRest, parts, prefix) => {
        fc.pre(Object.values(parts).includes(true));
        const options = { ...all, parts };
        const whole = { nodeName, hostname, iqn: prefix.prefix + iqnRest, nqn: all.nqnPrefix[0]?.prefix + nqnRest };
        const expected = Object.fromEntries(
          Object.entries(whole).filter(([part]) => parts[part as keyof typeof parts]),
        );
        assert.deepEqual(decodeNodeId(options, encodeNodeId(options, whole)), expected);
      },
    ),
    { numRuns: 300 },
  );
});

test('any text decodes to parts or to nothing, and only short names that do not exist are errors', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('n=', 'h=', 'id=', 'v1=', '/', 'a', '=', 'i', 'x', '\n', '\0'), { maxLength: 12 }),
      (pieces) => {
        const text = pieces.join('');
        try {
          const found = decodeNodeId(all, text);
          if (found) assert.ok(Object.values(found).every((value) => value !== ''));
        } catch (error) {
          failsWith('FAILED_PRECONDITION', /shortens/)(error);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test('foreign node ids are none', () => {
  for (const id of [
    '',
    'worker-3',
    'n=',
    'n=a/',
    '/n=a',
    'n=a/n=b',
    'x=a',
    'id=',
    'i=abc',
    'n=a//h=b',
    'n=a\n',
    'n=\0',
    'N=a',
    `n=${'a'.repeat(256)}`,
  ]) {
    assert.equal(decodeNodeId(all, id), undefined, JSON.stringify(id));
  }
});

test('what cannot be written is an error that says what to do', () => {
  const fails = (identity: Parameters<typeof encodeNodeId>[1], pattern: RegExp) =>
    assert.throws(() => encodeNodeId(all, identity), failsWith('FAILED_PRECONDITION', pattern));
  fails({ ...node, iqn: 'iqn.2005-03.org.other:x' }, /iqn\.2005-03\.org\.other:x, begins with none .*iqn\.1993-08/);
  fails({ ...node, iqn: undefined }, /needs the iqn/);
  fails({ ...node, nodeName: 'a/b' }, /nodeName .*"a\/b"/);
  fails({ ...node, hostname: '' }, /needs the hostname/);
  fails(
    { ...node, nodeName: 'a'.repeat(240) },
    /has 267 bytes \(nodeName 242, hostname 8, iqn 7, nqn 7\), but at most 256/,
  );
});

test('a short name that this controller does not have is explained', () => {
  assert.throws(() => decodeNodeId(nameOnly, 'n=a/id=5a4f'), failsWith('FAILED_PRECONDITION', /"d".*iqnPrefix/));
});

test('each connection gets the part that its storage understands', () => {
  const id = encodeNodeId(all, node);
  assert.equal(nodeAddress(all, {}, id), 'node-1');
  assert.equal(nodeAddress(all, { nodeIdType: 'hostname' }, id), 'host-1');
  assert.equal(nodeAddress(all, { nodeIdType: 'iqn' }, id), iqn);
  assert.equal(nodeAddress(all, { nodeIdType: 'nqn' }, id), nqn);
  assert.equal(
    nodeAddress(all, { nodeIdTemplate: '{hostname}.{nodeName}.lan $& {x}' }, id),
    'host-1.node-1.lan $& {x}',
  );
  assert.equal(nodeAddress(all, { nodeIdMap: { 'node-1': '42' } }, id), '42');
  assert.equal(nodeAddress(all, { nodeIdMap: { constructor: '42' } }, id), 'node-1');
  assert.equal(nodeAddress(all, { nodeIdType: 'iqn', nodeIdMap: { [iqn]: 'host 7' } }, id), 'host 7');
});

test('a part that the node id lacks, and a node id of somebody else', () => {
  assert.throws(
    () => nodeAddress(all, { nodeIdType: 'iqn' }, 'n=node-1'),
    failsWith('INVALID_ARGUMENT', /iqn .*proxy\.nodeId\.parts\.iqn/),
  );
  assert.throws(() => nodeAddress(all, {}, 'worker-3'), failsWith('NOT_FOUND', /"worker-3"/));
});
