import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { VolumeSpec } from '../../src/core/volume.ts';
import { type Said, standInDriver, standInHost } from './zfs-stand-in.ts';

const call = detachedContext(silentLogger);
const gib = 2 ** 30;

const spec = (name: string): VolumeSpec => ({
  name,
  capacity: { requiredBytes: gib },
  capabilities: [{ type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType: 'nfs', mountFlags: [], mountGroup: '' }],
  parameters: {},
  mutableParameters: {},
  topology: { requisite: [], preferred: [] },
});

type Properties = Record<string, string>;

/** A pool that remembers what datasets were made with. */
function pool() {
  const datasets = new Map<string, Properties>([['tank/v', { mountpoint: '/tank/v' }]]);
  const state = { root: '/tank/v', empty: false, stat: '2fc12fc1:1 1000 512', notMounted: false };
  const ofVolume = (name: string): readonly (readonly [string, string, string])[] => {
    const own = Object.entries(datasets.get(name) ?? {}).map(([key, value]) => [key, value, 'local'] as const);
    const id = name.slice(name.lastIndexOf('/') + 1);
    const mountpoint = name === 'tank/v' ? state.root : `${state.root}/${id}`;
    return [
      ['mountpoint', mountpoint, 'inherited'],
      ['mounted', state.notMounted ? 'no' : 'yes', '-'],
      ['available', '600000', '-'],
      ...own,
    ];
  };
  const told = (name: string, key: string): readonly [string, string] => {
    if (key === 'type') return [name.includes('@') ? 'snapshot' : 'filesystem', '-'];
    const [, value, source] = ofVolume(name).findLast(([own]) => own === key) ?? [];
    return value === undefined ? ['-', '-'] : [value, source ?? '-'];
  };
  const get = (args: readonly string[]): Said => {
    const name = args.at(-1) ?? '';
    if (!datasets.has(name)) return { code: 1, stderr: `cannot open '${name}': dataset does not exist\n` };
    const keys = args.at(-2)?.split(',') ?? [];
    const isDeep = args.includes('-r');
    const found = [...datasets.keys()].filter(
      (one) => one === name || (isDeep && /^[@/]/.test(one.slice(name.length)) && one.startsWith(name)),
    );
    if (args.includes('-j')) {
      const asJson = found.map((one) => {
        const read = keys.map((key) => [key, { value: told(one, key)[0], source: { type: told(one, key)[1] } }]);
        return [one, { name: one, type: told(one, 'type')[0], properties: Object.fromEntries(read) }];
      });
      return { stdout: JSON.stringify({ datasets: Object.fromEntries(asJson) }) };
    }
    return { stdout: found.flatMap((one) => keys.map((key) => [one, key, ...told(one, key)].join('\t'))).join('\n') };
  };
  const host = standInHost(([program, verb = '', ...args]): Said => {
    if (program === 'zpool') return { stdout: 'ONLINE\n' };
    if (program === 'stat') return { stdout: `${state.stat}\n` };
    if (program === 'df') return { stdout: 'Filesystem\ntank/v\n' };
    if (program === 'find') return { stdout: state.empty ? `${verb}\n` : '' };
    if (program === '[') {
      const mounted = ['', ...[...datasets.keys()].map((name) => name.slice('tank/v'.length))];
      return { code: mounted.some((below) => args[0] === `${state.root}${below}/.zfs`) ? 0 : 1 };
    }
    if (program !== 'zfs') return {};
    const name = args.at(-1) ?? '';
    if (verb === 'get') return get(args);
    if (verb === 'create') {
      if (datasets.has(name)) return { code: 1, stderr: `cannot create '${name}': dataset already exists\n` };
      datasets.set(name, assigned(args));
    }
    if (verb === 'set') Object.assign(datasets.get(name) ?? {}, assigned(args));
    if (verb === 'destroy') datasets.delete(name);
    return {};
  });
  return { datasets, state, host };
}

const assigned = (args: readonly string[]): Properties =>
  Object.fromEntries(
    args
      .filter((arg) => arg.includes('='))
      .map((arg) => [arg.slice(0, arg.indexOf('=')), arg.slice(arg.indexOf('=') + 1)]),
  );

const permissions = { datasetEnableQuotas: true, datasetPermissionsMode: 0o777, datasetPermissionsUser: '1000' };

function setUp() {
  const { host, ...rest } = pool();
  const driver = standInDriver(host, permissions);
  /** Round trips, and which programs with which verbs. */
  const watch = async <T>(work: () => Promise<T> | undefined) => {
    const [scripts, commands] = [host.scripts(), host.commands().length];
    const answer = await work();
    const names = host.commands().slice(commands);
    return {
      answer,
      roundTrips: host.scripts() - scripts,
      commands: names.map(([program, verb]) => (program === 'zfs' ? `zfs ${verb}` : program)),
    };
  };
  return {
    ...rest,
    host,
    driver,
    watch,
    create: (name: string) => watch(() => driver.volumes?.create(call, spec(name))),
  };
}

test('a volume is made by one command in one round trip, once it is known where volumes are mounted', async () => {
  const { create, datasets } = setUp();
  const first = await create('first');
  const second = await create('second');
  assert.equal(second.roundTrips, 1);
  assert.deepEqual(second.commands, ['zfs create', 'chown', 'chmod', 'sync']);
  assert.equal(second.answer?.capacityBytes, gib);
  assert.deepEqual(second.answer?.context, { ...first.answer?.context, share: '/tank/v/second' });
  assert.deepEqual(datasets.get('tank/v/second'), {
    ...datasets.get('tank/v/first'),
    'democratic-csi:csi_volume_name': 'second',
    'democratic-csi:csi_share_volume_context': '{"node_attach_driver":"nfs","server":"nas","share":"/tank/v/second"}',
  });
  const again = await create('second');
  assert.equal(again.roundTrips, 1);
  assert.deepEqual(again.answer, second.answer);
  assert.ok(!again.commands.includes('chmod'));
});

test('a creation that was interrupted before the permissions were set is seen, and completed', async () => {
  const { create, state, host } = setUp();
  await create('first');
  await create('second');
  state.empty = true;
  const again = await create('second');
  assert.ok(again.commands.includes('chmod') && again.commands.includes('chown'), again.commands.join());
  // So it is by a process that knows nothing yet.
  const before = host.commands().length;
  await standInDriver(host, permissions).volumes?.create(call, spec('second'));
  assert.ok(
    host
      .commands()
      .slice(before)
      .some(([program]) => program === 'chmod'),
  );
});

test('volumes are mounted elsewhere from now on: the share that is told is the right one', async () => {
  const { create, state } = setUp();
  await create('first');
  state.root = '/srv/v';
  assert.equal((await create('second')).answer?.context.share, '/srv/v/second');
  const third = await create('third');
  assert.equal(third.answer?.context.share, '/srv/v/third');
  assert.equal(third.roundTrips, 1);
});

test('deleting: one round trip for a plain volume; a look, and nothing else, for one that something depends on', async () => {
  const { create, datasets, driver, watch } = setUp();
  await create('plain');
  await create('held');
  datasets.set('tank/v/held@snap', { 'democratic-csi:managed_resource': 'true' });
  const plain = await watch(() => driver.volumes?.delete(call, 'plain'));
  assert.equal(plain.roundTrips, 1);
  assert.deepEqual(plain.commands, ['zfs get', 'zfs destroy']);
  assert.ok(!datasets.has('tank/v/plain'));
  const held = await watch(() =>
    driver.volumes?.delete(call, 'held').catch((error: unknown) => {
      assert.ok(error instanceof CallError && error.code === 'FAILED_PRECONDITION', String(error));
    }),
  );
  assert.deepEqual(new Set(held.commands), new Set(['zfs get']));
  assert.equal(held.roundTrips, 1);
  datasets.set('tank/v/mine', {});
  await assert.rejects(Promise.resolve(driver.volumes?.delete(call, 'mine')), { code: 'FAILED_PRECONDITION' });
  assert.ok(datasets.has('tank/v/mine') && datasets.has('tank/v/held'));
});

test('capacity is told by the mounted file system as long as it is the one it was', async () => {
  const { driver, state, watch } = setUp();
  const capacity = () => watch(() => driver.capacity?.(call, { capabilities: [], parameters: {} }));
  assert.equal((await capacity()).answer?.availableBytes, 600_000);
  assert.equal((await capacity()).answer?.availableBytes, 600_000);
  const quick = await capacity();
  assert.equal(quick.answer?.availableBytes, 512_000);
  assert.deepEqual(quick.commands, ['stat']);
  // Another file system is at its place, or none.
  for (const stat of ['2fc12fc1:2 7 512', 'ef53:1 7 512', '']) {
    state.stat = stat;
    assert.equal((await capacity()).answer?.availableBytes, 600_000, stat);
  }
});
