/** Volumes that a program of its own mounts: Onedata and ObjectiveFS. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { VolumeContext } from '../../src/core/volume.ts';
import { bench, call, enterMountNamespace, mountCapability } from './node-support.ts';
import { eventually } from './server-under-test.ts';

enterMountNamespace(import.meta.url);

const skip = !existsSync('/dev/fuse') && 'there is no /dev/fuse';

interface Called {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function fuseBench(t: TestContext, program: string, context: VolumeContext, secrets: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), 'fuse-'));
  const standIn = fileURLToPath(new URL('fuse-program.ts', import.meta.url));
  const path = join(folder, program);
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${standIn}' '${folder}' ${program} "$@"\n`, {
    mode: 0o755,
  });
  const made = await bench(t, { context, runner: { paths: { [program]: path } } });
  const killDaemon = async () => {
    const pid = Number(await readFile(join(folder, 'daemon'), 'utf8').catch(() => '0'));
    if (pid > 0 && existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
  };
  t.after(async () => {
    await killDaemon();
    await rm(folder, { recursive: true });
  });
  const request = { volumeId: 'v1', capability: mountCapability, context, publishContext: {} };
  return {
    ...made,
    folder,
    killDaemon,
    stage: (more: Partial<Parameters<typeof made.node.stage>[1]> = {}, given = secrets) =>
      made.node.stage({ ...call, secrets: given }, { ...request, stagingPath: made.path('stage'), ...more }),
    calls: async (): Promise<Called[]> => {
      const text = await readFile(join(folder, 'calls'), 'utf8').catch(() => '');
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    },
  };
}

type FuseBench = Awaited<ReturnType<typeof fuseBench>>;

async function lifecycle(volume: FuseBench, fsType: string): Promise<void> {
  await volume.stage();
  await volume.stage();
  assert.equal((await volume.mountAt('stage'))?.fsType, `fuse.${fsType}`);
  assert.equal((await volume.calls()).length, 1);
  await volume.publish('target');
  const stats = await volume.node.stats(call, { volumeId: 'v1', volumePath: volume.path('target') });
  assert.equal(stats.condition?.abnormal, false);
  assert.equal(stats.usage[0]?.total, 4 * 2 ** 30);
  await volume.unpublish('target');

  // The daemon dies: the next stage mounts it anew.
  await volume.killDaemon();
  const dead = await volume.node.stats(call, { volumeId: 'v1', volumePath: volume.path('stage') });
  assert.equal(dead.condition?.abnormal, true);
  await eventually(async () => {
    await volume.stage();
    assert.equal((await volume.calls()).length, 2);
  });
  assert.deepEqual(await volume.mounts(), ['stage']);
  await volume.unstage();
  await volume.unstage();
  assert.deepEqual(await volume.mounts(), []);

  // And while it is dead, it can be unstaged.
  await volume.stage();
  await volume.killDaemon();
  await volume.unstage();
  assert.deepEqual(await volume.mounts(), []);

  await writeFile(join(volume.folder, 'refuse'), '');
  await assert.rejects(volume.stage(), { message: /the server refuses/ });
  await volume.unstage();
  assert.deepEqual(await volume.mounts(), []);
}

const onedata = {
  node_attach_driver: 'oneclient',
  server: 'provider.example.org',
  space_names: 'one, two words',
  space_ids: '0123abc',
};

test('oneclient', { skip }, async (t) => {
  const volume = await fuseBench(t, 'oneclient', onedata, { token: 'MDAxMi-secret' });
  await lifecycle(volume, 'oneclient');
  const [first] = await volume.calls();
  const spaces = ['--space', 'one', '--space', 'two words', '--space-id', '0123abc'];
  assert.deepEqual(first?.args, ['-H', 'provider.example.org', ...spaces, volume.path('stage')]);
  assert.deepEqual(first?.env, { ONECLIENT_ACCESS_TOKEN: 'MDAxMi-secret' });
  assert.ok(!volume.commands.some((line) => line.includes('secret')));
});

test('mount flags of Onedata are oneclient’s when they begin with a dash, and FUSE’s otherwise', {
  skip,
}, async (t) => {
  const volume = await fuseBench(t, 'oneclient', { ...onedata, token: 'in-context' }, {});
  const flags = (...mountFlags: string[]) => ({ capability: { ...mountCapability, mountFlags, fsType: 'oneclient' } });
  await volume.stage(flags('--force-proxy-io', 'noatime,nosuid'));
  const [first] = await volume.calls();
  assert.deepEqual(first?.args.slice(2, 5), ['--force-proxy-io', '-o', 'noatime,nosuid']);
  assert.equal(first?.env.ONECLIENT_ACCESS_TOKEN, 'in-context');
  await volume.unstage();
  for (const flag of ['-t', '-it', '--token=x', '--token']) {
    await assert.rejects(volume.stage(flags(flag, 'x')), { code: 'INVALID_ARGUMENT' }, flag);
  }
  await assert.rejects(volume.stage({ context: { ...onedata, server: '-x' } }), { code: 'INVALID_ARGUMENT' });
  assert.equal((await volume.calls()).length, 1);
});

const objects = {
  node_attach_driver: 'objectivefs',
  filesystem: 'pool/v1',
  'env.REGION': 'here',
  'env.ACCESS_KEY': 'context',
};
const license = '0123456789abcdefghijklmn';
const keys = {
  'env.OBJECTIVEFS_LICENSE': `${license}-admin-key`,
  'env.OBJECTIVEFS_PASSPHRASE': 'pass phrase',
  'env.OBJECTSTORE': 'minio://',
  'env.ACCESS_KEY': 'secret',
  'env.SECRET_KEY': 'secret-key',
  'env.LD_PRELOAD': '/tmp/evil.so',
};

test('mount.objectivefs', { skip }, async (t) => {
  const volume = await fuseBench(t, 'mount.objectivefs', objects, keys);
  await lifecycle(volume, 'objectivefs');
  const [first] = await volume.calls();
  assert.deepEqual(first?.args, ['pool/v1', volume.path('stage')]);
  assert.deepEqual(first?.env, {
    OBJECTIVEFS_LICENSE: license,
    OBJECTIVEFS_PASSPHRASE: 'pass phrase',
    OBJECTSTORE: 'minio://',
    ACCESS_KEY: 'context',
    SECRET_KEY: 'secret-key',
    REGION: 'here',
  });
  assert.ok(!volume.commands.some((line) => line.includes('secret') || line.includes(license)));
});

test('an ObjectiveFS without an object store is refused; its name may tell it', { skip }, async (t) => {
  const { 'env.OBJECTSTORE': _store, ...rest } = keys;
  const volume = await fuseBench(t, 'mount.objectivefs', objects, rest);
  await assert.rejects(volume.stage(), { code: 'FAILED_PRECONDITION', message: /OBJECTSTORE/ });
  const context = { ...objects, filesystem: 's3://pool/v1' };
  const capability = { ...mountCapability, fsType: 'objectivefs', mountFlags: ['mt', 'noatime'] };
  await volume.stage({ context, capability });
  const [first] = await volume.calls();
  assert.deepEqual(first?.args, ['-o', 'mt,noatime', 's3://pool/v1', volume.path('stage')]);
  assert.equal(first?.env.OBJECTSTORE, 's3://');
  await volume.unstage();
  await assert.rejects(volume.stage({ context: { ...objects, filesystem: '--help' } }), { code: 'INVALID_ARGUMENT' });
});
