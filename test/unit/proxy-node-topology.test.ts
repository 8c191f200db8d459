import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as v from 'valibot';
import { proxySchema } from '../../src/proxy/config.ts';
import { problemWithKey, problemWithValue } from '../../src/proxy/labels.ts';
import type { NodeFacts } from '../../src/proxy/node-topology.ts';
import { explainNodeTopology } from '../../src/proxy/node-topology.ts';
import { failsWith } from './proxy-stand-ins.ts';

const facts: NodeFacts = {
  nodeName: 'rack7-node12',
  hostName: 'host-1.zone-b.example.org',
  env: { RACK: 'r7', EMPTY: '' },
  readFile: async (path) => {
    if (path === '/etc/zone') return ' zone-c \n';
    throw Object.assign(new Error('gone'), { code: 'ENOENT' });
  },
};

function topology(nodeTopology: unknown) {
  return v.parse(proxySchema, { driver: 'proxy', proxy: { configFolder: '/f', nodeTopology } }).proxy.nodeTopology;
}
const explain = (options: unknown, more: Partial<NodeFacts> = {}) =>
  explainNodeTopology(topology(options), { ...facts, ...more });
const segments = async (options: unknown) => (await explain(options)).segments;
const custom = (...customRules: object[]) => ({ type: 'custom', prefix: 'p.org', customRules });

test('cluster is the default, node is the node name', async () => {
  assert.deepEqual(await segments({}), { 'org.democratic-csi.topology/cluster': 'local' });
  assert.deepEqual(await segments({ type: 'node', prefix: 'p.org' }), { 'p.org/node': 'rack7-node12' });
});

test('both spellings of rules, and zone is another name of custom', async () => {
  const expected = { 'p.org/zone': 'zone-b' };
  const rule = { source: 'hostname' };
  assert.deepEqual(
    await segments(
      custom({ ...rule, keySuffix: 'zone', matchRegexp: '[^.]+\\.(zone-.)\\..*', resultTemplate: '${match:1}' }),
    ),
    expected,
  );
  for (const spelling of ['regex', 'regexp']) {
    const fromRegexp = [{ ...rule, topologyKey: 'zone', [spelling]: '[^.]+\\.(zone-.)\\..*', template: '{match:1}' }];
    assert.deepEqual(await segments({ type: 'zone', prefix: 'p.org', fromRegexp }), expected);
  }
});

test('all sources; a file is trimmed', async () => {
  assert.deepEqual(
    await segments(
      custom(
        { keySuffix: 'name' },
        { keySuffix: 'host', source: 'hostname' },
        { keySuffix: 'rack', source: 'env', envName: 'RACK' },
        { keySuffix: 'zone', source: 'file', file: '/etc/zone' },
      ),
    ),
    {
      'p.org/name': 'rack7-node12',
      'p.org/host': 'host-1.zone-b.example.org',
      'p.org/rack': 'r7',
      'p.org/zone': 'zone-c',
    },
  );
});

test('a regular expression must match the whole text', async () => {
  assert.deepEqual(await segments(custom({ keySuffix: 'rack', matchRegexp: 'rack7' })), {});
  assert.deepEqual(await segments(custom({ keySuffix: 'rack', matchRegexp: 'rack7|rack7-node12' })), {
    'p.org/rack': 'rack7-node12',
  });
});

test('one rule can combine several groups, and a group that took no part is empty', async () => {
  assert.deepEqual(
    await segments(
      custom({
        keySuffix: 'k',
        matchRegexp: 'rack(\\d+)-node(\\d+)(x)?',
        resultTemplate: 'r${match:1}.{match:2}${match:3}',
      }),
    ),
    { 'p.org/k': 'r7.12' },
  );
});

test('rules that give nothing are skipped and say why; a later rule overrides an earlier one', async () => {
  const { segments: found, outcomes } = await explain(
    custom(
      { keySuffix: 'zone', resultTemplate: 'first' },
      { keySuffix: 'rack', matchRegexp: 'no' },
      { keySuffix: 'empty', source: 'env', envName: 'EMPTY' },
      { keySuffix: 'unset', source: 'env', envName: 'UNSET' },
      { keySuffix: 'file', source: 'file', file: '/none' },
      { keySuffix: 'zone', resultTemplate: 'last' },
    ),
  );
  assert.deepEqual(found, { 'p.org/zone': 'last' });
  assert.deepEqual(
    outcomes.map(({ note, warning }) => [note, warning]),
    [
      ['overridden by rule 6 (zone from nodeName)', false],
      ['skipped: "rack7-node12" does not match', false],
      ['skipped: the result is empty', false],
      ['skipped: the environment variable UNSET is not set', true],
      ['skipped: /none cannot be read (ENOENT)', true],
      [undefined, false],
    ],
  );
  assert.equal(outcomes[5]?.segment?.value, 'last');
});

test('rules that can never work are errors that name the rule', async () => {
  const fails = (rule: object, pattern: RegExp) =>
    assert.rejects(explain(custom({ keySuffix: 'ok' }, rule)), failsWith('FAILED_PRECONDITION', pattern));
  await fails({ keySuffix: 'zone', matchRegexp: '(?=x)y' }, /rule 2 \(zone from nodeName\).*lookaround/);
  await fails({ keySuffix: 'zone', matchRegexp: '(a)\\1' }, /rule 2 .*backreferences/);
  await fails({ keySuffix: 'zone', matchRegexp: '(' }, /rule 2 .*cannot be used/);
  await fails({ keySuffix: 'zone', resultTemplate: '${match:2}' }, /rule 2 .*\$\{match:2\}.*only 1 groups/);
  await fails({ keySuffix: 'bad key' }, /rule 2 .*"bad key" is not a topology key/);
  await fails({ keySuffix: 'other.org/zone' }, /rule 2 .*outside the prefix p\.org/);
  await fails({ keySuffix: 'zone', resultTemplate: 'a b' }, /rule 2 .*"a b" is not a topology value/);
  await fails({ keySuffix: 'zone', resultTemplate: 'x'.repeat(64) }, /rule 2 .*not a topology value/);
  await assert.rejects(explain({ type: 'node', prefix: 'no prefix' }), failsWith('FAILED_PRECONDITION', /prefix/));
  await assert.rejects(explain({ type: 'node' }, { nodeName: '' }), failsWith('FAILED_PRECONDITION', /type "node"/));
});

test('a key may be written with the prefix', async () => {
  assert.deepEqual(await segments(custom({ keySuffix: 'p.org/zone', resultTemplate: 'a' })), { 'p.org/zone': 'a' });
});

test('a regular expression that would take for ever elsewhere ends', async () => {
  const rule = { keySuffix: 'zone', matchRegexp: '(a+)+(b*)*(a|aa)+$', resultTemplate: 'found' };
  const { outcomes } = await explain(custom(rule), { nodeName: `${'a'.repeat(20_000)}!` });
  assert.match(outcomes[0]?.note ?? '', /does not match/);
});

const patternPieces = [
  ...['a', '.', '(', ')', '(?:', '(?=', '(?<n>', '[', ']', '[^', '\\', '\\d', '\\1', '\\p{L}', '\\x{110000}'],
  ...['*', '+', '?', '|', '^', '$', '{2,1}', '{1000}', '{1001}', '(?i)', '\0', '\ud800', '\u{1f4a9}'],
];
const joined = (pieces: readonly string[]) =>
  fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((all) => all.join(''));

test('whatever the rules and the node are, segments are legal labels or the error names the rule', async () => {
  const text = fc.oneof(fc.string({ maxLength: 70 }), fc.constantFrom('a', 'zone-1', 'x_y.z', '-a', ''));
  const rule = fc.record({
    keySuffix: fc.oneof(fc.constantFrom('zone', 'rack', 'a.b'), fc.string({ maxLength: 5 })),
    matchRegexp: fc.oneof(fc.constantFrom('(.*)', '([a-z]+)(.*)', '(.)?(.*)', '[a-z]+'), joined(patternPieces)),
    resultTemplate: fc.oneof(
      fc.constantFrom('{match:0}', '${match:1}', 'x{match:1}', '{match:0}{match:0}'),
      joined(['{match:', '${match:', '0', '1', '99999999999999999999', '-1', '}', '$&', '$1', 'x', '/', '']),
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(rule, { maxLength: 4 }), text, async (rules, nodeName) => {
      try {
        const { segments: found, outcomes } = await explain(custom(...rules), { nodeName });
        assert.equal(outcomes.length, rules.length);
        for (const [key, value] of Object.entries(found)) {
          assert.equal(problemWithKey(key), undefined);
          assert.equal(problemWithValue(value), undefined);
          assert.ok(key.startsWith('p.org/'));
        }
      } catch (error) {
        failsWith('FAILED_PRECONDITION', /node topology, rule \d/)(error);
      }
    }),
    { numRuns: 300 },
  );
});

test('the configuration refuses what is incomplete or doubtful', () => {
  for (const rule of [
    { keySuffix: 'x', source: 'env' },
    { keySuffix: 'x', source: 'file' },
    { source: 'hostname' },
    { keySuffix: 'x', source: 'dns' },
  ]) {
    assert.throws(() => topology({ type: 'custom', customRules: [rule] }), JSON.stringify(rule));
  }
  assert.throws(() => topology({ type: 'zone', fromRegexp: [{ topologyKey: 'x', regex: 'a', regexp: 'b' }] }));
  assert.throws(() => topology({ type: 'region' }));
});
