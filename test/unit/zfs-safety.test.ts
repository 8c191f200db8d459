import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { createLocalShell } from '../../src/backends/shell/local-shell.ts';
import { runSteps, type Steps } from '../../src/backends/shell/steps.ts';
import { datasetOf } from '../../src/backends/zfs/dataset.ts';
import type { ZfsHost } from '../../src/backends/zfs/zfs-host.ts';
import { detachedContext } from '../../src/core/call.ts';
import type { WholeNodeOperations } from '../../src/core/driver.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { blockDeviceRules } from '../../src/drivers/common/capability-check.ts';
import type { ZfsStore } from '../../src/drivers/zfs/store.ts';
import { unmountOwn } from '../../src/drivers/zfs/unmount-own.ts';
import { inlineNode } from '../../src/drivers/zfs-local-ephemeral-inline/inline-node.ts';
import { type Programs, standInDriver, standInHost } from './zfs-stand-in.ts';

const call = detachedContext(silentLogger);
const volume = {
  name: 'new',
  capacity: {},
  capabilities: [],
  parameters: {},
  mutableParameters: {},
  topology: { requisite: [], preferred: [] },
};

test('only what is mounted last at a place, and is the volume, is unmounted', async () => {
  const store = { zfs: { program: (...argv: readonly string[]) => ['echo', ...argv] } } as unknown as ZfsStore;
  const unmounted = async (name: string, path: string) => {
    const steps = unmountOwn(store, datasetOf(name, 'filesystem', { mountpoint: path, mounted: 'yes' }), '-l');
    const [result] = await runSteps(call, createLocalShell(createRunner()), steps as unknown as Steps, {
      title: 'umount',
      timeoutMs: 10_000,
    });
    return result.stdout.trim();
  };
  const [line = ''] = (await readFile('/proc/self/mounts', 'utf8'))
    .split('\n')
    .filter((one) => / \/proc /.test(one))
    .slice(-1);
  const source = line.split(' ')[0] ?? '';
  assert.equal(await unmounted(source, '/proc'), 'umount -l -- /proc');
  assert.equal(await unmounted('tank/v/a', '/proc'), `${source} is mounted over it`);
  assert.equal(await unmounted('tank/v/a', '/tank/v/nothing here'), '');
  assert.deepEqual(unmountOwn(store, datasetOf('tank/v/a', 'filesystem', { mountpoint: '/proc', mounted: 'no' })), []);
});

test('where nothing tells that a pool is not imported but ZFS, it is asked before a volume is said to be gone', async () => {
  const isMissing: Programs = ([, verb, ...args]) => ({
    code: 1,
    stderr: `cannot open '${args.at(-1)}': ${verb === 'destroy' ? 'busy' : 'dataset does not exist'}\n`,
  });
  const { volumes, snapshots } = standInDriver(standInHost(isMissing));
  const unavailable = (error: unknown) => error instanceof CallError && error.code === 'UNAVAILABLE';
  await assert.rejects(async () => volumes?.delete(call, 'gone'), unavailable);
  await assert.rejects(async () => snapshots?.delete(call, 'gone@shot'), unavailable);
  await assert.rejects(async () => volumes?.list?.(call, {}), unavailable);
  await assert.rejects(async () => volumes?.list?.(call, { limit: 10 }), unavailable);
  await assert.rejects(async () => snapshots?.list?.(call, {}, {}), unavailable);
});

test('a volume goes with thousands of snapshots, which do not fit into one argument', async () => {
  const count = 3000;
  const names = Array.from({ length: count }, (_, n) => `tank/v/old@automatic-${'x'.repeat(60)}-${n}`);
  const own = (value: string) => ({ value, source: { type: 'LOCAL' } });
  const whole = {
    'democratic-csi:managed_resource': own('true'),
    'democratic-csi:provision_success': own('true'),
    'democratic-csi:csi_share_volume_context': own('{}'),
  };
  const datasets = Object.fromEntries([
    ['tank/v/old', { name: 'tank/v/old', type: 'FILESYSTEM', properties: whole }],
    ...names.map((name) => [name, { name, type: 'SNAPSHOT', properties: {} }]),
  ]);
  const host = standInHost(([, verb]) => (verb === 'get' ? { stdout: JSON.stringify({ datasets }) } : {}));
  await standInDriver(host).volumes?.delete(call, 'old');
  const destroyed = host.commands().filter(([, verb]) => verb === 'destroy');
  const lots = destroyed.flatMap((argv) => argv.filter((word) => word.includes('@')));
  assert.ok(lots.every((word) => word.length < 2 ** 17 - 1));
  assert.equal(lots.flatMap((word) => word.split(',')).length, count);
  assert.deepEqual(destroyed.at(-1), ['zfs', 'destroy', '-f', 'tank/v/old']);
});

test('an inline volume is one that was made as such: volumes of another driver may lie beside', async () => {
  const mark = 'democratic-csi:managed_resource';
  const driver = 'democratic-csi:volume_context_provisioner_driver';
  const owns = async (properties: Readonly<Record<string, string>>) => {
    const zfs = { readOne: async () => datasetOf('tank/v/a', 'filesystem', properties) } as unknown as ZfsHost;
    const options = {
      zfs,
      parent: 'tank/v',
      properties: {},
      rules: blockDeviceRules([], undefined),
      instanceId: undefined,
    };
    const { owns: own } = inlineNode({} as WholeNodeOperations, { ...options, driver: 'zfs-local-ephemeral-inline' });
    return await own?.(call, 'a');
  };
  assert.equal(await owns({ [mark]: 'true', [driver]: 'zfs-local-ephemeral-inline' }), true);
  assert.equal(await owns({ [mark]: 'true', [driver]: 'zfs-local-dataset' }), false);
  assert.equal(await owns({ [driver]: 'zfs-local-ephemeral-inline' }), false);
});

test('names that ZFS does not take are refused before anything is made', async () => {
  const host = standInHost(() => ({}));
  const tooLong = (error: unknown) => error instanceof CallError && error.code === 'INVALID_ARGUMENT';
  const parent = `tank/${'p'.repeat(200)}`;
  const { volumes, snapshots } = standInDriver(host, { datasetParentName: parent });
  await assert.rejects(async () => volumes?.create(call, { ...volume, name: 'n'.repeat(51) }), tooLong);
  const shot = { name: 's'.repeat(60), sourceVolumeId: 'a', parameters: {} };
  await assert.rejects(async () => snapshots?.create(call, shot), tooLong);
  assert.deepEqual(host.commands(), []);
});
