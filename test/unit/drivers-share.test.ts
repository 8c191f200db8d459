/** What a controller takes for its share, and how it mounts one: with a mount table, a `mount` and an `umount` of their own. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import * as v from 'valibot';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { Command, RunCommand } from '../../src/backends/exec/run.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { driverFromExample, idleEnvironment } from '../../src/cli/driver-from-example.ts';
import { detachedContext } from '../../src/core/call.ts';
import { asCallError } from '../../src/core/errors.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';
import { localFiles } from '../../src/drivers/directory/files.ts';
import { createShareGuard, type ShareGuard } from '../../src/drivers/directory/share-guard.ts';
import { createShareMount, type ShareMountOptions } from '../../src/drivers/directory/share-mount.ts';
import { driverType } from '../../src/drivers/index.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';

const call = detachedContext(silentLogger);
const rootLine = '1 0 8:1 / / rw - ext4 /dev/sda1 rw';

/** A machine with a table of mounts that its programs change. */
class Machine {
  readonly lines = [rootLine];
  readonly commands: Command[] = [];
  failing: string | undefined;
  readonly readTable = async () => parseMountTable(this.lines.join('\n'));

  readonly run: RunCommand = async (_call, command) => {
    this.commands.push(command);
    const { program, args } = command;
    const ok = { code: 0, stdout: '', stderr: '' };
    if (this.failing !== undefined) {
      throw new CommandFailed({ program, exitCode: 32, signal: null, stdout: '', stderr: this.failing });
    }
    const place = args.at(-1) ?? '';
    const at = this.lines.findLastIndex((line) => line.split(' ')[4] === place);
    if (program === 'umount' && at > 0) this.lines.splice(at, 1);
    if (program === 'mount') this.mount(args.at(-2) ?? '', place, args[args.indexOf('-t') + 1]);
    return ok;
  };

  mount(source: string, place: string, type = 'nfs'): void {
    this.lines.push(`${this.lines.length + 1} 1 0:${this.lines.length} / ${place} rw - ${type} ${source} rw`);
  }

  ran(): string[] {
    return this.commands.map(({ program, args }) => `${program} ${args.join(' ')}`);
  }
}

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'share-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

interface Site {
  readonly machine: Machine;
  readonly base: string;
  readonly guard: ShareGuard;
  readonly lines: string[];
}

async function makeSite(t: TestContext, host = 'nas', mount?: Partial<ShareMountOptions>): Promise<Site> {
  const base = await makeFolder(t);
  const machine = new Machine();
  const lines: string[] = [];
  const log = createLogger({ level: 'info', format: 'text', write: (line) => lines.push(line) });
  const { readTable } = machine;
  const options = { base, host, title: `${host}:/x`, files: localFiles, readTable, log };
  const guard = createShareGuard({
    ...options,
    mount: mount && { ...mountOf(machine, base, mount), hold: async () => {} },
  });
  return { machine, base, guard, lines };
}

function mountOf(machine: Machine, place: string, more: Partial<ShareMountOptions> = {}) {
  return createShareMount({
    place,
    context: { node_attach_driver: 'nfs', server: 'nas', share: '/x' },
    flags: ['nfsvers=4.2'],
    credentials: undefined,
    title: 'nas:/x',
    tools: { run: machine.run, limits: defaultTimeLimits, settings: {}, readTable: machine.readTable },
    log: silentLogger,
    ...more,
  });
}

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
  const options = { host: 'nas', title: 'nas:/x', files: localFiles, readTable, log: silentLogger };
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
  const unused = mountOf(machine, base, { context: { node_attach_driver: 'nfs', server: 'nas', share: '/y' } });
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
  const options = { base, host: 'nas', title: 'nas:/x', files, readTable: machine.readTable, log: silentLogger };
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
