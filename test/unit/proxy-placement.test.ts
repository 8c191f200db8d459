import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Topology } from '../../src/core/volume.ts';
import { fits, placesFrom, placeVolume } from '../../src/proxy/placement.ts';
import { failsWith } from './proxy-stand-ins.ts';

const places = placesFrom('p.org', [
  { requirements: { zone: 'a' }, extra: { 'example.org/disk': 'fast' } },
  { requirements: { 'p.org/zone': 'b' }, extra: {} },
  { requirements: { zone: 'c', rack: '1' }, extra: {} },
]);
const zone = (name: string): Topology => ({ 'p.org/zone': name });
const want = (requisite: readonly Topology[], preferred: readonly Topology[] = []) =>
  placeVolume(places, { requisite, preferred });

test('one requisite topology that fits is enough, whatever the others are', () => {
  assert.deepEqual(want([zone('x'), zone('b')]), [zone('b')]);
});

test('the answer has the requirements with full keys and the extra labels', () => {
  assert.deepEqual(want([zone('a')]), [{ 'p.org/zone': 'a', 'example.org/disk': 'fast' }]);
});

test('labels of other plugins and those the connection does not name do not decide', () => {
  assert.deepEqual(want([{ ...zone('b'), 'kubernetes.io/hostname': 'n1', 'p.org/rack': '9' }]), [zone('b')]);
  assert.equal(want([{ 'kubernetes.io/hostname': 'n1' }]).length, 3);
});

test('every label that the connection names and the request has must be equal', () => {
  assert.deepEqual(want([{ ...zone('c'), 'p.org/rack': '1' }]), [{ ...zone('c'), 'p.org/rack': '1' }]);
  assert.throws(() => want([{ ...zone('c'), 'p.org/rack': '2' }]), failsWith('RESOURCE_EXHAUSTED'));
});

test('nothing requisite: all places', () => {
  assert.equal(want([]).length, 3);
});

test('preferred places come first, in the order of preference', () => {
  assert.deepEqual(
    want([], [zone('b'), zone('x'), zone('a')]).map((one) => one['p.org/zone']),
    ['b', 'a', 'c'],
  );
  assert.deepEqual(
    want([zone('a'), zone('b')], [zone('b'), zone('c')]).map((one) => one['p.org/zone']),
    ['b', 'a'],
  );
});

test('a request that nothing fits names both sides', () => {
  assert.throws(
    () => want([zone('x'), zone('y')]),
    failsWith(
      'RESOURCE_EXHAUSTED',
      /\{p\.org\/zone=a\} or \{p\.org\/zone=b\}.*wanted in \{p\.org\/zone=x\} or \{p\.org\/zone=y\}/,
    ),
  );
});

const label = fc.constantFrom('p.org/zone', 'p.org/rack', 'foreign.org/x');
const topologies = fc.array(fc.dictionary(label, fc.constantFrom('1', '2', '3'), { maxKeys: 3 }), { maxLength: 4 });

test('a volume is placed if and only if some place fits some requisite topology; order never changes the set', () => {
  const configured = fc.array(
    fc.dictionary(fc.constantFrom('zone', 'rack'), fc.constantFrom('1', '2'), { maxKeys: 2 }),
    {
      minLength: 1,
      maxLength: 4,
    },
  );
  fc.assert(
    fc.property(configured, topologies, topologies, (entries, requisite, preferred) => {
      const all = placesFrom(
        'p.org',
        entries.map((requirements) => ({ requirements, extra: {} })),
      );
      const fitting = all.filter((place) => requisite.length === 0 || requisite.some((one) => fits(place, one)));
      if (fitting.length === 0) {
        assert.throws(() => placeVolume(all, { requisite, preferred }), failsWith('RESOURCE_EXHAUSTED'));
        return;
      }
      const placed = placeVolume(all, { requisite, preferred });
      assert.deepEqual(new Set(placed), new Set(fitting.map((place) => place.segments)));
      assert.equal(placed.length, fitting.length);
      const ranks = placed.map((segments) => {
        const rank = preferred.findIndex((one) => fits({ requirements: segments, segments }, one));
        return rank < 0 ? Number.POSITIVE_INFINITY : rank;
      });
      assert.deepEqual(
        ranks,
        ranks.toSorted((a, b) => a - b),
      );
    }),
    { numRuns: 300 },
  );
});
