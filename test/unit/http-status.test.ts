/** What the status tells of a proxy whose calls hang. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { createObserver } from '../../src/frontends/http/observer.ts';
import type { Sources } from '../../src/frontends/http/sources.ts';
import type { Status } from '../../src/frontends/http/status.ts';
import { tellStatus } from '../../src/frontends/http/tell-status.ts';
import { silentMeter } from '../../src/pipeline/meter.ts';
import { createPipeline, type IncomingCall } from '../../src/pipeline/pipeline.ts';
import { createRecentFailures } from '../../src/pipeline/recent-failures.ts';
import { aSpec, type Switchboard, switchboard } from './proxy-stand-ins.ts';

interface Watched extends Switchboard {
  status(): Promise<Status>;
  /** CreateVolume by a caller; `patience` ends his waiting. */
  create(name: string, options?: { connection?: string; requestId?: string; patience?: AbortSignal }): Promise<unknown>;
}

async function watched(t: TestContext, ...rest: Parameters<typeof switchboard> extends [unknown, ...infer R] ? R : []) {
  return watch(await switchboard(t, ...rest));
}

function watch(board: Switchboard): Watched {
  const failures = createRecentFailures();
  const pipeline = createPipeline({ log: silentLogger, metrics: silentMeter, onFailure: failures.add });
  const sources: Sources = {
    driver: board.proxy,
    pipeline,
    failures,
    plugin: {
      name: 'org.example.csi',
      nodeName: 'node-1',
      modes: ['controller', 'node'],
      version: '1.2.3',
      commit: 'abc',
      addresses: ['unix:///csi.sock'],
    },
    log: silentLogger,
  };
  const observer = createObserver(sources);
  return {
    ...board,
    status: () => tellStatus(sources, observer),
    create(name, { connection = 'nas', requestId, patience = new AbortController().signal } = {}) {
      const incoming: IncomingCall = {
        method: 'CreateVolume',
        signal: patience,
        secrets: { password: 'hunter2' },
        requestId,
        summary: { name },
        details: () => ({}),
        routine: false,
      };
      return pipeline.handle(incoming, async (call) =>
        board.proxy.volumes?.create(call, aSpec(name, { parameters: { connection } })),
      );
    },
  };
}

/** Every CreateVolume waits for `zfs create` until `open` is called; `reached` resolves when one does. */
function hang(t: TestContext, { world }: Watched) {
  const opened = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  t.after(() => opened.resolve());
  world.before = async (_connection, operation, call) => {
    if (!operation.startsWith('CreateVolume')) return;
    await call.waitingFor('`zfs create` on nas1', () => {
      reached.resolve();
      return opened.promise;
    });
  };
  return { reached: reached.promise, open: opened.resolve };
}

test('with nothing wrong, nothing asks for attention', async (t) => {
  const board = await watched(t);
  const status = await board.status();
  assert.deepEqual(status.attention, []);
  assert.equal(status.ready, true);
  assert.deepEqual(
    status.connections.map(({ name, state, driver, capacity }) => [name, state, driver, capacity.state]),
    [['nas', 'ok', 'memory', 'known']],
  );
  assert.equal(status.node?.nodeId, 'n=node-1');
  assert.deepEqual(status.node.topology, [
    { key: 'org.democratic-csi.topology/cluster', value: 'local', rule: 'type "cluster"' },
  ]);
  assert.equal(status.plugin.version, '1.2.3');
});

test('a call tells what its operation waits for, and an equal one that it has joined it', async (t) => {
  const board = await watched(t);
  const { reached, open } = hang(t, board);
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
  const first = board.create('v1', { requestId: 'one' });
  await reached;
  t.mock.timers.setTime(1_029_000);
  const before = await board.status();
  assert.deepEqual(before.attention, []);
  assert.equal(before.calls[0]?.stuck, false);

  t.mock.timers.setTime(1_031_000);
  const second = board.create('v1', { requestId: 'two' });
  while (board.proxy.connections()[0]?.operations[0]?.callers.length !== 2) await new Promise(setImmediate);
  const status = await board.status();
  const [one, two] = status.calls;
  assert.deepEqual(
    [one?.requestId, one?.subject, one?.connection, one?.seconds, one?.waitingFor, one?.stuck, one?.operation?.joined],
    ['one', 'v1', 'nas', 31, '`zfs create` on nas1', true, false],
  );
  assert.deepEqual(
    [two?.requestId, two?.seconds, two?.waitingFor, two?.stuck, two?.operation],
    ['two', 0, '`zfs create` on nas1', true, { title: 'CreateVolume v1', seconds: 31, joined: true }],
  );
  assert.equal(status.connections[0]?.operations, 1);
  assert.deepEqual(status.attention, [
    {
      kind: 'stuck',
      about: 'CreateVolume v1 on nas',
      text: '31 s now, waiting for `zfs create` on nas1; 2 calls wait for it',
    },
  ]);
  open();
  await Promise.all([first, second]);
});

test('work goes on without its caller, and is told so', async (t) => {
  const board = await watched(t);
  const { reached, open } = hang(t, board);
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
  const patience = new AbortController();
  const call = board.create('v1', { requestId: 'one', patience: patience.signal });
  await reached;
  patience.abort(new CallError('DEADLINE_EXCEEDED', 'the caller has gone'));
  await assert.rejects(call);
  t.mock.timers.setTime(1_200_000);
  const status = await board.status();
  assert.deepEqual(status.calls, []);
  const [operation] = status.operations;
  assert.deepEqual([operation?.title, operation?.callers, operation?.seconds], ['CreateVolume v1', 0, 200]);
  assert.match(status.attention[0]?.text ?? '', /^3 min 20 s now, .*nobody waits for it any more/);
  assert.deepEqual(
    status.failures.map(({ method, subject, connection, code }) => [method, subject, connection, code]),
    [['CreateVolume', 'v1', 'nas', 'DEADLINE_EXCEEDED']],
  );
  open();
});

test('a broken file and storage that does not answer are told; neither holds up the status', async (t) => {
  const board = await watched(t, { nas: true, hung: true, dead: true, bad: 'driver: nothing\n' });
  const never = new Promise<never>(() => {});
  board.world.before = async (connection, operation) => {
    if (operation !== 'GetCapacity') return;
    if (connection === 'hung') await never;
    if (connection === 'dead') throw new CallError('UNAVAILABLE', 'no route to host');
  };
  const status = await board.status();
  const capacities = Object.fromEntries(status.connections.map(({ name, capacity }) => [name, capacity]));
  assert.equal(capacities.hung?.state, 'asking');
  assert.equal(capacities.nas?.state, 'known');
  assert.equal(capacities.bad?.state, 'unknown');
  assert.ok(capacities.dead?.state === 'failed' && capacities.dead.problem === 'no route to host');
  assert.deepEqual(
    status.attention.map(({ kind, about }) => [kind, about]),
    [
      ['broken-connection', 'Connection bad'],
      ['no-answer', 'Connection dead'],
    ],
  );
  assert.match(status.attention[0]?.text ?? '', /there is no driver "nothing".*its calls fail until that is repaired/);
});

test('while the folder of connections hangs, no storage is asked through it', async (t) => {
  const board = await watched(t);
  await board.status();
  board.world.asked.length = 0;
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 });
  const hanging = watch({ ...board, proxy: { ...board.proxy, lookAtConnections: () => new Promise(() => {}) } });
  const status = await hanging.status();
  assert.deepEqual(
    status.connections.map(({ name, capacity }) => [name, capacity.state]),
    [['nas', 'asking']],
  );
  assert.deepEqual(board.world.asked, []);
});

test('the storage is not asked by every reader', async (t) => {
  const board = await watched(t);
  for (let i = 0; i < 5; i++) await board.status();
  assert.deepEqual(board.world.asked, ['nas GetCapacity']);
});

test('rules that made nothing are told with the reason, and what a node lacks', async (t) => {
  const rules = [
    { keySuffix: 'rack', matchRegexp: 'node-(\\d+)', resultTemplate: 'rack-{match:1}' },
    { keySuffix: 'zone', source: 'env', envName: 'ZONE' },
  ];
  const options = { nodeId: { parts: { iqn: true } }, nodeTopology: { type: 'custom', customRules: rules } };
  const board = await watched(t, { nas: true }, options);
  const { node, attention } = await board.status();
  assert.deepEqual(node?.topology, [
    { key: 'org.democratic-csi.topology/rack', value: 'rack-1', rule: 'rule 1 (rack from nodeName)' },
  ]);
  assert.deepEqual(node.skipped, [
    { rule: 'rule 2 (zone from env ZONE)', why: 'skipped: the environment variable ZONE is not set', warning: true },
  ]);
  assert.match(node.problem ?? '', /needs the iqn/);
  assert.deepEqual(
    attention.map(({ kind }) => kind),
    ['node', 'node'],
  );
});

test('no secret is in it', async (t) => {
  const board = await watched(t);
  board.world.before = () => Promise.reject(new CallError('UNAVAILABLE', 'no'));
  await assert.rejects(board.create('v1'));
  const text = JSON.stringify(await board.status());
  assert.match(text, /"subject":"v1"/);
  assert.doesNotMatch(text, /hunter2/);
});
