import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import type { VolumeCapability } from '../../src/core/volume.ts';
import {
  blockDeviceRules,
  fileSystemRules,
  refusal,
  requireCapabilities,
} from '../../src/drivers/common/capability-check.ts';
import { chooseSize, fitsRange, requireRange } from '../../src/drivers/common/capacity.ts';
import { compileIdTemplate, loadTemplates } from '../../src/drivers/common/id-template.ts';
import { pageOfIds } from '../../src/drivers/common/paging.ts';
import { parameter, sameParameters } from '../../src/drivers/common/parameters.ts';
import { isHere, requireHere } from '../../src/drivers/common/reach.ts';
import { encodeName, isVolumeId, volumeId } from '../../src/drivers/common/volume-id.ts';

const gib = 2 ** 30;
const named = (name: string, maxBytes = 128) => volumeId({ name, parameters: {} }, { maxBytes });

test('an ordinary name is the id itself', () => {
  for (const name of ['v1', 'pvc-6a1c', 'A_b-C', '0']) assert.equal(named(name), name);
});

test('other characters are written as a dot and two digits', () => {
  assert.equal(named('web[0]'), 'web.5b0.5d');
  assert.equal(named('a.b'), 'a.2eb');
  assert.equal(named('..'), '.2e.2e');
  assert.equal(named('../../x'), '.2e.2e.2f.2e.2e.2fx');
  assert.equal(named('-rf'), '.2drf');
  assert.equal(named('_x'), '.5fx');
  assert.equal(named('é'), '.c3.a9');
});

test('names that no id can be made of are refused', () => {
  for (const name of ['', 'a\0b', 'a\nb', '\u007f', '\u0085', '\ud800']) {
    assert.throws(() => named(name), { code: 'INVALID_ARGUMENT' }, JSON.stringify(name));
  }
});

test('an id can be read back to its name and is a safe file name', () => {
  const decode = (id: string) =>
    Buffer.concat(
      (id.match(/\.[0-9a-f]{2}|[^.]/g) ?? []).map((part) =>
        part.length === 3 ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part),
      ),
    ).toString('utf8');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), (name) => {
      const id = encodeName(name);
      assert.equal(decode(id), name.toWellFormed());
      assert.ok(isVolumeId(id) || id.length > 128);
      assert.ok(!id.includes('..') && !id.includes('/'));
    }),
    { numRuns: 300 },
  );
});

test('a long id is shortened to the limit, always in the same way, and to an id of its own', () => {
  const long = 'x'.repeat(200);
  const short = named(long, 120);
  assert.equal(short.length, 120);
  assert.equal(short, `${'x'.repeat(103)}-${createHash('sha256').update(long).digest('hex').slice(0, 16)}`);
  assert.equal(named(long, 120), short);
  assert.notEqual(named(`${long}y`, 120), short);
  assert.equal(named('x'.repeat(120), 120), 'x'.repeat(120));
});

test('shortening never cuts an encoded byte in two', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', '.', '['), { minLength: 1, maxLength: 128 }),
      fc.integer({ min: 62, max: 128 }),
      (letters, maxBytes) => {
        const id = named(letters.join(''), maxBytes);
        assert.ok(id.length <= maxBytes);
        assert.ok(isVolumeId(id), id);
      },
    ),
    { numRuns: 300 },
  );
});

test('texts that are no ids', () => {
  for (const text of ['', '.', '..', 'a/b', '/a', 'a.b', 'a..', '.2', '.2E', 'a\0', 'a\n', 'a b', 'x'.repeat(129)]) {
    assert.equal(isVolumeId(text), false, JSON.stringify(text));
  }
});

test('templates see name and parameters, escape nothing, and are hashed afterwards', async () => {
  await loadTemplates();
  const values = { name: 'pvc-1', parameters: { 'csi.storage.k8s.io/pvc/name': 'data & more' } };
  const template = compileIdTemplate('{{name}}_{{parameters.[csi.storage.k8s.io/pvc/name]}}');
  assert.equal(volumeId(values, { template, maxBytes: 128 }), 'pvc-1_data.20.26.20more');
  const expected = createHash('md5').update('pvc-1_data & more').digest('hex');
  assert.equal(volumeId(values, { template, hash: 'md5', maxBytes: 128 }), expected);
  assert.throws(() => volumeId(values, { template: compileIdTemplate('{{missing}}'), maxBytes: 128 }), {
    code: 'INVALID_ARGUMENT',
    message: /template is empty/,
  });
  assert.throws(() => compileIdTemplate('{{name'), { code: 'FAILED_PRECONDITION' });
});

test('hashes have the published check values, checksums as decimal numbers', () => {
  const of = (hash: 'md5' | 'crc8' | 'crc16' | 'crc32') =>
    volumeId({ name: '123456789', parameters: {} }, { hash, maxBytes: 128 });
  assert.equal(of('crc8'), String(0xf4));
  assert.equal(of('crc16'), String(0xbb3d));
  assert.equal(of('crc32'), String(0xcbf43926));
  assert.equal(of('md5'), '25f9e794323b453885f5181f1b624d0b');
});

test('sizes: required, else limit, else 1 GiB, and never less than the content needs', () => {
  assert.equal(chooseSize({}), gib);
  assert.equal(chooseSize({ requiredBytes: 0, limitBytes: 0 }), gib);
  assert.equal(chooseSize({ requiredBytes: 5, limitBytes: 7 }), 5);
  assert.equal(chooseSize({ limitBytes: 7 }), 7);
  assert.equal(chooseSize({}, 3 * gib), 3 * gib);
  assert.throws(() => chooseSize({ requiredBytes: gib }, 2 * gib), { code: 'OUT_OF_RANGE' });
  assert.throws(() => chooseSize({ limitBytes: gib }, 2 * gib), { code: 'OUT_OF_RANGE' });
});

test('sizes are compared as numbers', () => {
  requireRange({ requiredBytes: 5 * gib, limitBytes: 10 * gib });
  assert.throws(() => requireRange({ requiredBytes: 10 * gib, limitBytes: 5 * gib }), { code: 'OUT_OF_RANGE' });
  assert.equal(fitsRange(10, { requiredBytes: 9, limitBytes: 100 }), true);
  assert.equal(fitsRange(10, { requiredBytes: 11 }), false);
  assert.equal(fitsRange(10, { limitBytes: 9 }), false);
  assert.equal(fitsRange(10, { limitBytes: 0 }), true);
});

test('the most specific key of a parameter wins, in whatever order they come', () => {
  const scope = { driver: 'd', instanceId: 'i' };
  const all = {
    'democratic-csi.org/i/k': '4',
    k: '1',
    'democratic-csi.org/d/k': '3',
    'democratic-csi.org/k': '2',
  };
  const without = (...keys: string[]) => Object.fromEntries(Object.entries(all).filter(([key]) => !keys.includes(key)));
  assert.equal(parameter(all, 'k', scope), '4');
  assert.equal(parameter(all, 'k', { driver: 'd' }), '3');
  assert.equal(parameter(without('democratic-csi.org/i/k'), 'k', scope), '3');
  assert.equal(parameter(without('democratic-csi.org/i/k', 'democratic-csi.org/d/k'), 'k', scope), '2');
  assert.equal(parameter({ k: '1' }, 'k', scope), '1');
  assert.equal(parameter({}, 'constructor', scope), undefined);
});

test('parameters are compared whole', () => {
  assert.equal(sameParameters({ a: '1', b: '2' }, { b: '2', a: '1' }), true);
  assert.equal(sameParameters({ a: '1' }, { a: '1', b: '2' }), false);
  assert.equal(sameParameters({ a: '1', b: '2' }, { a: '1' }), false);
  assert.equal(sameParameters({ a: '1' }, { a: '2' }), false);
  assert.equal(sameParameters({ toString: '1' }, {}), false);
});

test('pages cover a list once, also when entries vanish between them', () => {
  const ids = fc.uniqueArray(fc.stringMatching(/^[a-z0-9.-]{1,8}$/), { maxLength: 30 });
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 7 }), fc.boolean(), (all, limit, vanish) => {
      const seen: string[] = [];
      let left = all;
      let token: string | undefined;
      do {
        const page: { ids: readonly string[]; nextToken?: string } = pageOfIds(left, { limit, token });
        seen.push(...page.ids);
        token = page.nextToken;
        if (vanish) left = left.filter((id) => !page.ids.includes(id));
      } while (token !== undefined);
      assert.deepEqual(seen, [...all].sort());
    }),
    { numRuns: 300 },
  );
});

test('a token that was never given out is ABORTED', () => {
  for (const token of ['invalid-token', 'after-', 'after-!!', 'after-YQ==', '1', 'x'.repeat(500)]) {
    assert.throws(() => pageOfIds(['a', 'b'], { token }), { code: 'ABORTED' }, token);
  }
});

test('a place is here when nothing contradicts', () => {
  const node = { 'p/node': 'n1', 'p/zone': 'z1' };
  assert.equal(isHere({ 'p/node': 'n1' }, node), true);
  assert.equal(isHere({ 'p/node': 'n2' }, node), false);
  assert.equal(isHere({ 'p/zone': 'z1', 'p/node': 'n2' }, node), false);
  assert.equal(isHere({ 'kubernetes.io/hostname': 'n2' }, node), true);
  const either = { requisite: [{ 'p/node': 'n2' }, { 'p/node': 'n1' }], preferred: [] };
  requireHere(either, node);
  requireHere({ requisite: [], preferred: [{ 'p/node': 'n2' }] }, node);
  assert.throws(() => requireHere({ requisite: [{ 'p/node': 'n2' }], preferred: [] }, node), {
    code: 'RESOURCE_EXHAUSTED',
    message: /p\/node=n2.*p\/node=n1/,
  });
});

test('capabilities: access type, access mode and file system type', () => {
  const mount = (more: object = {}): VolumeCapability => ({
    type: 'mount',
    mode: 'SINGLE_NODE_WRITER',
    fsType: '',
    mountFlags: [],
    mountGroup: '',
    ...more,
  });
  const block: VolumeCapability = { type: 'block', mode: 'SINGLE_NODE_WRITER' };
  const folder = fileSystemRules(['none']);
  assert.equal(refusal([mount(), mount({ fsType: 'none', mode: 'MULTI_NODE_MULTI_WRITER' })], folder), undefined);
  assert.match(refusal([mount(), block], folder) ?? '', /no block volumes/);
  assert.match(refusal([mount({ fsType: 'ext4' })], folder) ?? '', /"ext4"/);
  assert.throws(() => requireCapabilities([block], folder), { code: 'INVALID_ARGUMENT' });
  const readOnly = fileSystemRules(['none'], ['SINGLE_NODE_READER_ONLY']);
  assert.match(refusal([mount()], readOnly) ?? '', /SINGLE_NODE_WRITER is not/);
  const disk = blockDeviceRules(['ext4']);
  assert.equal(refusal([{ ...block, mode: 'MULTI_NODE_MULTI_WRITER' }], disk), undefined);
  assert.match(refusal([mount({ mode: 'MULTI_NODE_MULTI_WRITER' })], disk) ?? '', /MULTI_NODE_MULTI_WRITER is not/);
});
