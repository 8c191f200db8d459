/** What a controller takes for its share, and how it mounts one: with a mount table, a `mount` and an `umount` of their own. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import * as v from 'valibot';
import { driverFromExample, idleEnvironment } from '../../src/cli/driver-from-example.ts';
import { detachedContext } from '../../src/core/call.ts';
import { asCallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { localFiles } from '../../src/drivers/directory/files.ts';
import { createShareGuard } from '../../src/drivers/directory/share-guard.ts';
import { driverType } from '../../src/drivers/index.ts';
import { Machine, makeFolder, makeSite, mountOf, rootLine, sightOf } from './share-machine.ts';

const call = detachedContext(silentLogger);
const refused = { code: 'FAILED_PRECONDITION', message: /nas:\/x is not mounted at .*controllerMount: auto/ };

test('a share that is mounted is used, and missed when it is not any more, whatever lies below', async (t) => {
  const { machine, base, guard } = await makeSite(t);
  machine.mount('nas:/x', base);
  await guard.ready(call);
  machine.lines.pop();
  await mkdir(join(base, 'v'));
  await assert.rejects(guard.ready(call), { ...refused, message: /any more/ });
});

test('a folder below the mount that is not there yet is on the share', async (t) => {
  const { machine, base } = await makeSite(t);
  machine.mount('nas:/x', base);
  const { readTable } = machine;
  const sight = sightOf('nas', '/x/not/yet');
  const options = { host: 'nas', title: 'nas:/x', sight, files: localFiles, readTable, log: silentLogger };
  await createShareGuard({ ...options, base: join(base, 'not/yet') }).ready(call);
});

test('a local folder is not taken for the share', async (t) => {
  const { guard } = await makeSite(t);
  await assert.rejects(guard.ready(call), refused);
});

test('a local folder is the share where this machine is the server', async (t) => {
  const own = ['127.0.0.1', 'localhost', '::1', '[::1]', hostname(), `${hostname().toUpperCase()}.example.org`];
  for (const host of own) await (await makeSite(t, host)).guard.ready(call);
});

test('a local folder with volumes in it is used, with a warning', async (t) => {
  const { base, guard, lines } = await makeSite(t);
  await mkdir(join(base, 'v'));
  await guard.ready(call);
  await guard.ready(call);
  assert.equal(lines.filter((line) => line.includes('controllerMount: local')).length, 1);
});

test('a share is mounted when it is not, once, and unmounted when its last user is closed', async (t) => {
  const { machine, base, guard } = await makeSite(t, 'nas', {});
  await Promise.all([guard.ready(call), guard.ready(call)]);
  await guard.ready(call);
  assert.deepEqual(machine.ran(), [`mount -t nfs -o nfsvers=4.2,retry=0 nas:/x ${base}`]);
  const before = mountOf(machine, base);
  await before.ensure(call, async () => true);
  const after = mountOf(machine, base);
  await after.ensure(call, async () => true);
  await before.close();
  assert.equal(machine.lines.length, 2);
  await after.close();
  assert.equal(machine.lines.length, 2, 'the first guard uses it still');
});

test('at the end it is unmounted whoever mounted it, but nothing else is', async (t) => {
  const { machine, base } = await makeSite(t);
  const own = mountOf(machine, base);
  await own.ensure(call, async () => false);
  await own.close();
  assert.deepEqual(machine.lines, [rootLine]);
  machine.mount('nas:/x/', base, 'nfs4');
  const found = mountOf(machine, base);
  await found.ensure(call, async () => true);
  await found.close();
  assert.deepEqual(machine.lines, [rootLine]);
  machine.mount('nas:/y', base);
  const other = mountOf(machine, base);
  await other.ensure(call, async () => true);
  await other.close();
  const unused = mountOf(machine, base, { sight: sightOf('nas', '/y') });
  await unused.close();
  assert.equal(machine.lines.length, 2);
});

test('a share that cannot be mounted is refused, at once for a while', async (t) => {
  const { machine, guard } = await makeSite(t, 'nas', {});
  machine.failing = 'mount.nfs: access denied by server while mounting nas:/x';
  await assert.rejects(guard.ready(call), { message: /access denied by server/ });
  const ran = machine.commands.length;
  await assert.rejects(guard.ready(call), { code: 'UNAVAILABLE', message: /access denied.*asked again in/ });
  assert.equal(machine.commands.length, ran);
});

test('a mount that is stale is said to be, and made anew where it may be', async (t) => {
  const base = await makeFolder(t);
  const machine = new Machine();
  machine.mount('nas:/x', base);
  let stale = true;
  // As Node.js reports ESTALE.
  const error = Object.assign(new Error('Unknown system error -116: …'), { code: 'Unknown system error -116' });
  assert.deepEqual([asCallError(error).code, asCallError(error).message], ['UNAVAILABLE', 'ESTALE: …']);
  const files = { ...localFiles, realPath: async () => (stale ? Promise.reject(error) : base) };
  const { readTable } = machine;
  const sight = sightOf('nas');
  const options = { base, host: 'nas', title: 'nas:/x', sight, files, readTable, log: silentLogger };
  await assert.rejects(createShareGuard(options).ready(call), {
    code: 'UNAVAILABLE',
    message: /is stale: mount it anew/,
  });
  const made: string[] = [];
  const mount = {
    ensure: async (_call: unknown, isThere: () => Promise<boolean>) => {
      if (await isThere()) return;
      made.push('mounted');
      stale = false;
    },
    hold: async () => {},
    close: async () => {},
  };
  const guard = createShareGuard({ ...options, mount });
  await guard.ready(call);
  await guard.ready(call);
  guard.stale();
  await guard.ready(call);
  assert.equal(made.length, 2);
});

test('a password for the share is no argument of a program', async (t) => {
  const { machine, base } = await makeSite(t);
  const mount = mountOf(machine, base, {
    context: { node_attach_driver: 'smb', server: 'nas', share: 'x' },
    flags: ['nohandlecache'],
    credentials: { username: 'me', password: 'se,cr"et' },
  });
  await mount.ensure(call, async () => false);
  const [command] = machine.commands;
  assert.equal(command?.program, 'mount');
  assert.ok(!command.args.join(' ').includes('cr"et'));
  assert.equal(command.env?.PASSWD, 'se,cr"et');
  assert.ok(command.args.includes('nohandlecache'));
});

for (const [name, share, context] of [
  ['nfs-client', '/srv/csi', { node_attach_driver: 'nfs', share: '/srv/csi/v/v1' }],
  ['smb-client', 'csi/sub', { node_attach_driver: 'smb', share: 'csi/sub/v/v1' }],
  ['smb-client', '/csi/', { node_attach_driver: 'smb', share: 'csi/v/v1' }],
  ['lustre-client', '/scratch/csi/', { node_attach_driver: 'lustre', share: '/scratch/csi/v/v1' }],
] as const) {
  test(`what nodes are told: ${name} at ${share}`, async (t) => {
    const type = driverType(name);
    assert.ok(type);
    const base = await makeFolder(t);
    const block = { shareHost: 'nas', shareBasePath: share, controllerBasePath: base, controllerMount: 'local' };
    const options = v.parse(type.schema, { driver: name, [name.replace('-client', '')]: block });
    const driver = type.create(options, idleEnvironment);
    const mount = { type: 'mount', mode: 'MULTI_NODE_MULTI_WRITER', mountFlags: [], mountGroup: '' } as const;
    const fsType = { nfs: 'nfs', smb: 'cifs', lustre: 'lustre' }[context.node_attach_driver];
    const spec = {
      name: 'v1',
      capacity: {},
      parameters: {},
      mutableParameters: {},
      topology: { requisite: [], preferred: [] },
    };
    const made = await driver.volumes?.create(call, { ...spec, capabilities: [{ ...mount, fsType }] });
    assert.deepEqual(made?.context, { ...context, server: 'nas', provisioner_driver: name });
    assert.equal(made?.topology, undefined);
    await assert.rejects(
      async () => driver.volumes?.create(call, { ...spec, capabilities: [{ ...mount, fsType: 'ext4' }] }),
      { code: 'INVALID_ARGUMENT' },
    );
    await driver.close();
  });
}

test('only SMB volumes take the group of a request', async () => {
  for (const name of ['nfs-client', 'smb-client', 'lustre-client']) {
    const type = driverType(name);
    assert.ok(type);
    const { node, constrained } = await driverFromExample(type);
    assert.equal(node?.extra.has('VOLUME_MOUNT_GROUP'), name === 'smb-client');
    assert.equal(constrained, false);
  }
});
