import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as v from 'valibot';
import { checkConnections } from '../../src/proxy/check.ts';
import { proxySchema } from '../../src/proxy/config.ts';
import { aCall, aSpec, switchboard } from './proxy-stand-ins.ts';

test('every connection file is read as the proxy would, and drivers are closed again', async (t) => {
  const board = await switchboard(t, {
    good: true,
    warned: 'driver: memory\ncolour: green\n',
    broken: 'driver: [',
    refusing: 'driver: memory\nmemory: { refuse: "no such pool" }',
    nested: 'driver: proxy',
    label: 'driver: memory\nproxy: { perDriver: { topology: [{ requirements: { zone: "a b" } }] } }',
  });
  const { connections, problems } = await checkConnections(board.config, board.environment, 'main.yaml');
  assert.deepEqual(problems, []);
  const summary = connections.map(({ name, driver, problems: found }) => [
    name,
    driver,
    found.map((one) => `${one.severity} ${one.line} ${one.message.slice(0, 40)}`),
  ]);
  assert.deepEqual(
    summary.map(([name, driver]) => [name, driver]),
    [
      ['broken', undefined],
      ['good', 'memory'],
      ['label', 'memory'],
      ['nested', undefined],
      ['refusing', 'memory'],
      ['warned', 'memory'],
    ],
  );
  const of = (name: string) => JSON.stringify(summary.find(([one]) => one === name)?.[2]);
  assert.equal(of('good'), '[]');
  assert.match(of('warned'), /warning 2 unknown key colour/);
  assert.match(of('broken'), /error 1 /);
  assert.match(of('refusing'), /error 0 no such pool/);
  assert.match(of('nested'), /cannot be a proxy/);
  assert.match(of('label'), /proxy\.perDriver\.topology: .*a b.* is not a/);
  assert.deepEqual(
    board.world.made.map((one) => one.closed),
    [1, 1],
  );
  assert.deepEqual(board.world.asked, []);
});

test('files that the proxy does not see, and a default that does not exist, are warnings', async (t) => {
  const board = await switchboard(t, { good: true }, { defaultConnection: 'nas' });
  for (const file of ['old.yml', 'b@d.yaml', '.hidden.yaml', 'README.md'])
    await writeFile(join(board.folder, file), '');
  const { problems } = await checkConnections(board.config, board.environment, 'main.yaml');
  assert.deepEqual(
    problems
      .map((one) => `${one.severity} ${one.file.replace(board.folder, '')} ${one.message.slice(0, 30).trimEnd()}`)
      .toSorted(),
    [
      'warning /b@d.yaml ignored: a connection name has',
      'warning /old.yml ignored: connection files end',
      'warning main.yaml there is no connection "nas"',
    ],
  );
});

test('topology rules that cannot work and a missing folder are errors of the main file', async (t) => {
  const rule = { keySuffix: 'zone', matchRegexp: '(?=x)' };
  const board = await switchboard(t, {}, { nodeTopology: { type: 'custom', customRules: [rule] } });
  await rm(board.folder, { recursive: true });
  const { connections, problems } = await checkConnections(board.config, board.environment, 'main.yaml');
  assert.deepEqual(connections, []);
  assert.deepEqual(
    problems.map((one) => [one.severity, one.path]),
    [
      ['error', 'proxy.nodeTopology'],
      ['error', 'proxy.configFolder'],
    ],
  );
});

test('rules without effect are pointed out', async (t) => {
  const rules = await switchboard(t, {}, { nodeTopology: { type: 'cluster', customRules: [{ keySuffix: 'zone' }] } });
  const none = await switchboard(t, {}, { nodeTopology: { type: 'zone' } });
  for (const board of [rules, none]) {
    const { problems } = await checkConnections(board.config, board.environment, 'main.yaml');
    assert.deepEqual(
      problems.map((one) => [one.severity, one.path]),
      [['warning', 'proxy.nodeTopology']],
    );
  }
});

test('the main file: defaults, and what it refuses', () => {
  const parse = (proxy: object) => v.parse(proxySchema, { driver: 'proxy', proxy }).proxy;
  assert.deepEqual(parse({ configFolder: '/etc/connections/' }), {
    configFolder: '/etc/connections',
    cacheTimeoutMinutes: 60,
    listing: { skipUnavailable: false },
    nodeId: { parts: { nodeName: true, hostname: false, iqn: false, nqn: false }, iqnPrefix: [], nqnPrefix: [] },
    nodeTopology: { type: 'cluster', prefix: 'org.democratic-csi.topology', rules: [] },
  });
  assert.equal(parse({ configFolder: '/' }).configFolder, '/');
  const prefix = { shortName: 'a', prefix: 'iqn.' };
  for (const wrong of [
    {},
    { configFolder: '' },
    { configFolder: '/f', cacheTimeoutMinutes: -2 },
    { configFolder: '/f', nodeId: { parts: { nodeName: false } } },
    { configFolder: '/f', nodeId: { iqnPrefix: [{ ...prefix, shortName: 'A' }] } },
    { configFolder: '/f', nodeId: { iqnPrefix: [prefix, prefix] } },
  ]) {
    assert.throws(() => parse(wrong), JSON.stringify(wrong));
  }
});

test('volumes of one node in a cluster whose nodes all look the same are pointed out, in the check and in the log', async (t) => {
  const files = {
    local: 'driver: memory\nmemory: { constrained: true }',
    placed:
      'driver: memory\nmemory: { constrained: true }\nproxy: { perDriver: { topology: [{ requirements: { zone: a } }] } }',
    nas: true,
  } as const;
  const board = await switchboard(t, files);
  const { connections } = await checkConnections(board.config, board.environment, 'main.yaml');
  assert.deepEqual(
    connections.map(({ name, problems }) => [name, problems.map((one) => one.severity)]),
    [
      ['local', ['warning']],
      ['nas', []],
      ['placed', []],
    ],
  );
  assert.match(connections[0]?.problems[0]?.message ?? '', /on one node.*use type "node"/);
  await board.proxy.volumes?.create(aCall(), aSpec('v', { parameters: { connection: 'local' } }));
  assert.ok(board.log.some((line) => line.includes('all nodes look the same')));
});
