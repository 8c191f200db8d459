/** NVMe over Fabrics on a sysfs that the test makes, with a stand-in for the kernel that checks the line of every connection. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { Command } from '../../src/backends/exec/run.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { detachedContext } from '../../src/core/call.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { VolumeContext } from '../../src/core/volume.ts';
import { parseConnectOptions } from '../../src/node/attachers/nvmeof/connect-options.ts';
import { nvmeofAt } from '../../src/node/attachers/nvmeof/nvmeof.ts';
import { parseTransport } from '../../src/node/attachers/nvmeof/transport.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';

const nqn = 'nqn.2026-01.org.example:vol';
const hostNqn = 'nqn.2014-08.org.nvmexpress:uuid:7edba553-e59f-4d7d-94eb-372705cefb9f';
const hostId = '66c323c1-9fa9-4b7a-99d4-ddc4945a1daa';

type Files = Readonly<Record<string, string>>;

interface Machine {
  readonly root: string;
  readonly commands: Command[];
  readonly attacher: ReturnType<typeof nvmeofAt>;
  readonly attach: (context: VolumeContext, secrets?: Files) => Promise<string>;
  readonly call: ReturnType<typeof detachedContext>;
  add(files: Files): Promise<void>;
}

/** `connect`: what the kernel makes of a line written to it. */
async function machine(
  t: TestContext,
  connect: (line: string, machine: Machine) => Promise<void> = async () => {},
): Promise<Machine> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'nvme-')));
  t.after(() => rm(root, { recursive: true, force: true }));
  const commands: Command[] = [];
  const run = async (_call: unknown, command: Command) => {
    commands.push(command);
    if (command.program === 'dd') await connect(command.input ?? '', self);
    // The kernel forgets a controller whose deletion was asked for.
    if (command.program === 'tee') for (const file of command.args) await forget(root, file);
    if (command.program === 'multipathd') throw failure('multipathd', 'error receiving packet');
    return { code: 0, stdout: '', stderr: '' };
  };
  const tools = { run, limits: defaultTimeLimits, settings: {}, readTable: async () => parseMountTable('') };
  const attacher = nvmeofAt(tools, {
    sysfs: join(root, 'sys'),
    fabrics: '/dev/nvme-fabrics',
    folder: join(root, 'etc/nvme'),
    hostRoot: join(root, 'host'),
    numberOf: async () => '10:257',
    nodeOf: async (_call, _tools, name) => `/dev/${name}`,
  });
  const call = detachedContext(silentLogger);
  const self: Machine = {
    root,
    commands,
    attacher,
    call,
    async attach(context, secrets = {}) {
      const request = { volumeId: 'v', context, publishContext: {}, capability, table: parseMountTable('') };
      const attached = await attacher.attach({ ...call, secrets }, request);
      assert.equal(attached.type, 'device');
      return attached.type === 'device' ? attached.path : '';
    },
    add: (files) => makeFiles(root, files),
  };
  await self.add({
    'etc/nvme/hostnqn': `${hostNqn}\n`,
    'etc/nvme/hostid': `${hostId}\n`,
    'sys/module/nvme_core/parameters/multipath': 'Y\n',
  });
  return self;
}

const capability = { type: 'block', mode: 'SINGLE_NODE_WRITER' } as const;

async function makeFiles(root: string, files: Files): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    if (text.startsWith('-> ')) await symlink(join(root, text.slice(3)), join(root, path));
    else await writeFile(join(root, path), text);
  }
}

async function forget(root: string, file: string): Promise<void> {
  const folder = join(file, '..');
  for (const subsystem of await readdir(join(root, 'sys/class/nvme-subsystem'))) {
    await rm(join(root, 'sys/class/nvme-subsystem', subsystem, folder.split('/').at(-1) ?? ''), { force: true });
  }
}

function failure(program: string, stderr: string): CommandFailed {
  return new CommandFailed({ program, exitCode: 1, signal: null, stdout: '', stderr });
}

/** A subsystem's controller as the kernel shows it. */
function controller(name: string, address: string, more: Files = {}, subsystem = 'nvme-subsys0'): Files {
  const folder = `sys/devices/ctl/${name}`;
  const facts = { transport: 'rdma', state: 'live', address, subsysnqn: nqn, ...more };
  return {
    ...Object.fromEntries(Object.entries(facts).map(([file, text]) => [`${folder}/${file}`, `${text}\n`])),
    [`sys/class/nvme-subsystem/${subsystem}/${name}`]: `-> ${folder}`,
    [`sys/class/nvme-subsystem/${subsystem}/subsysnqn`]: `${facts.subsysnqn}\n`,
  };
}

function disk(folder: string, number: string, nsid: number, more: Files = {}): Files {
  const facts = { dev: number, nsid: String(nsid), size: '2048', wwid: `uuid.${nsid}`, ...more };
  return {
    ...Object.fromEntries(Object.entries(facts).map(([file, text]) => [`${folder}/${file}`, `${text}\n`])),
    [`sys/dev/block/${number}`]: `-> ${folder}`,
    [`sys/class/block/${folder.split('/').at(-1)}`]: `-> ${folder}`,
  };
}

const subsystemFolder = 'sys/class/nvme-subsystem/nvme-subsys0';
const context = { nqn, nsid: '1', transport: 'rdma://10.0.0.1' };

/** Two paths to a namespace that the kernel joins. Names say nothing of NSIDs. */
const joined: Files = {
  ...controller('nvme3', 'traddr=10.0.0.1,trsvcid=4420'),
  ...controller('nvme4', 'traddr=10.0.0.2,trsvcid=4420'),
  'sys/devices/ctl/nvme3/nvme0c3n2/ana_state': 'optimized\n',
  'sys/devices/ctl/nvme4/nvme0c4n2/ana_state': 'inaccessible\n',
  ...disk(`${subsystemFolder}/nvme0n1`, '4095:1', 2),
  ...disk(`${subsystemFolder}/nvme0n2`, '4095:2', 1),
};

test('transports are read as the URIs they are', () => {
  const read = (uri: string) => {
    const { type, host, port, options } = parseTransport(uri);
    return [type, host, port, Object.fromEntries(options)];
  };
  assert.deepEqual(read('tcp://nas1'), ['tcp', 'nas1', '4420', {}]);
  assert.deepEqual(read('TCP://10.0.0.1:04421/'), ['tcp', '10.0.0.1', '4421', {}]);
  assert.deepEqual(read('rdma://[fd00::1]:4420'), ['rdma', 'fd00::1', '4420', {}]);
  assert.deepEqual(read('tcp://fd00::1'), ['tcp', 'fd00::1', '4420', {}]);
  assert.deepEqual(read('tcp://[fe80::1%25eth0]'), ['tcp', 'fe80::1%eth0', '4420', {}]);
  assert.deepEqual(read('tcp://a?ctrl-loss-tmo=-1&nr_io_queues=4&hdr-digest&data-digest=false'), [
    'tcp',
    'a',
    '4420',
    { ctrl_loss_tmo: '-1', nr_io_queues: '4', hdr_digest: true },
  ]);
  const wwn = 'nn-0x20000090fa942779:pn-0x10000090fa942779';
  assert.deepEqual(read(`fc://${wwn}?host-traddr=${wwn}`), ['fc', wwn, undefined, { host_traddr: wwn }]);
  const wrong = ['', 'nas1', 'http://a', 'tcp://', 'tcp://a:0', 'tcp://a:70000', 'tcp://a b', 'tcp://-a', 'tcp://a,b'];
  const more = ['tcp://[fd00::1', 'tcp://[nas1]', 'tcp://a?transport=rdma', 'tcp://a?nqn=x', 'tcp://a?tos=x'];
  for (const uri of [
    ...wrong,
    ...more,
    `fc://${wwn}`,
    'fc://nas1',
    'tcp://a?hostnqn=x,duplicate_connect',
    'tcp://a?hostnqn=',
  ]) {
    assert.throws(() => parseTransport(uri), { code: 'INVALID_ARGUMENT' }, uri);
  }
});

test('no argument of a URI can become another option of the kernel', () => {
  fc.assert(
    fc.property(fc.constantFrom('hostnqn', 'host-iface', 'dhchap-secret', 'tos', 'tls'), fc.string(), (name, value) => {
      let options: ReturnType<typeof parseConnectOptions>;
      try {
        options = parseConnectOptions(`${name}=${encodeURIComponent(value)}`, 'tcp://a');
      } catch (error) {
        assert.ok(name !== 'dhchap-secret' || value.length < 8 || !String(error).includes(value));
        return;
      }
      for (const [, text] of options) assert.ok(text === true || /^[^,\s]+$/.test(text));
    }),
    { numRuns: 300 },
  );
});

test('what is not connected is, by one line that has no place among arguments', async (t) => {
  const lines: string[] = [];
  const node = await machine(t, async (line, self) => {
    lines.push(line);
    await self.add(joined);
  });
  const transport = 'rdma://10.0.0.1?nr-io-queues=2&hdr-digest';
  const path = await node.attach({ ...context, transport }, { 'dhchap-secret': 'DHHC-1:00:c2VjcmV0:' });
  assert.equal(path, '/dev/nvme0n2');
  assert.deepEqual(lines, [
    `transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=${nqn},hostnqn=${hostNqn},hostid=${hostId},` +
      'dhchap_secret=DHHC-1:00:c2VjcmV0:,nr_io_queues=2,hdr_digest',
  ]);
  assert.ok(!JSON.stringify(node.commands.map(({ args, env }) => [args, env])).includes('c2VjcmV0'));
  assert.equal(await node.attach({ ...context, transport }), '/dev/nvme0n2');
  assert.equal(node.commands.length, 1);
});

test('Fibre Channel has no port, and comes from a port of this node', async (t) => {
  const lines: string[] = [];
  const node = await machine(t, async (line, self) => {
    lines.push(line);
    await self.add({ ...joined, ...controller('nvme3', 'traddr=nn-0x1:pn-0x2', { transport: 'fc' }) });
  });
  const wwn = 'nn-0x20000090fa942779:pn-0x10000090fa942779';
  await node.attach({ ...context, transport: `fc://${wwn}?host-traddr=${wwn}` });
  assert.match(lines[0] ?? '', new RegExp(`^transport=fc,traddr=${wwn},nqn=.*,host_traddr=${wwn}$`));
  assert.ok(!lines[0]?.includes('trsvcid'));
});

test('a TCP portal is asked before the kernel is', async (t) => {
  const portal = createServer((socket) =>
    socket
      .on('data', (request) => {
        assert.equal(request.length, 128);
        assert.equal(request.readUInt32LE(4), 128);
        socket.write(Buffer.from([1, 0, 128, 0]));
      })
      .on('error', () => {}),
  );
  const other = createServer((socket) => socket.end('HTTP/1.1 400\r\n\r\n').on('error', () => {}));
  t.after(() => [portal, other].map((server) => server.close()));
  const ports = await Promise.all(
    [portal, other].map(async (server) => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const address = server.address();
      return typeof address === 'object' ? address?.port : undefined;
    }),
  );
  const node = await machine(t, (_line, self) => self.add(joined));
  await node.attach({ ...context, transport: '', transports: ports.map((port) => `tcp://127.0.0.1:${port}`).join() });
  assert.deepEqual(
    node.commands.map(({ program, input }) => [program, /trsvcid=(\d+)/.exec(input ?? '')?.[1]]),
    [['dd', String(ports[0])]],
  );
});

test('connections that are there are used, however their addresses are spelled', async (t) => {
  const node = await machine(t, () => Promise.reject(failure('dd', 'dd: error writing: Input/output error')));
  await node.add({ ...joined, ...controller('nvme4', 'traddr=fd00:0:0::1,trsvcid=4420,src_addr=fd00::2') });
  const transports = 'rdma://10.0.0.1,rdma://[FD00::1]';
  assert.equal(await node.attach({ ...context, transport: '', transports }), '/dev/nvme0n2');
  assert.equal(node.commands.length, 0);
  // One that cannot be made does not matter while another is there; where none is, the reason is told.
  assert.equal(await node.attach({ ...context, transport: 'rdma://10.0.0.9' }), '/dev/nvme0n2');
  assert.equal(node.commands.length, 1);
  await assert.rejects(node.attach({ ...context, nqn: 'nqn.2026-01.org.example:other' }), {
    code: 'UNAVAILABLE',
    message: new RegExp(`rdma://10.0.0.1:4420: the target refuses: .* does not admit ${hostNqn}`),
  });
});

test('two disks of one namespace that nothing joins are never one volume', async (t) => {
  const node = await machine(t);
  await node.add({
    'sys/module/nvme_core/parameters/multipath': 'N\n',
    ...controller('nvme3', 'traddr=10.0.0.1,trsvcid=4420'),
    ...disk('sys/devices/ctl/nvme3/nvme3n1', '4095:1', 1),
  });
  const both = { ...context, transports: 'rdma://10.0.0.2' };
  // One is there, and a second one is not made.
  assert.equal(await node.attach(both), '/dev/nvme3n1');
  assert.ok(!node.commands.some(({ program }) => program === 'dd'));
  await node.add({
    ...controller('nvme4', 'traddr=10.0.0.2,trsvcid=4420'),
    ...disk('sys/devices/ctl/nvme4/nvme4n1', '4095:2', 1),
  });
  await assert.rejects(node.attach(both), { code: 'FAILED_PRECONDITION', message: /nothing joins/ });
});

test('the host is known by its own name, or nothing is connected', async (t) => {
  const lines: string[] = [];
  const node = await machine(t, async (line) => void lines.push(line));
  await node.add(joined);
  const connect = async () => {
    lines.length = 0;
    await node.attach({ ...context, transports: 'rdma://10.0.0.9' });
    return /hostnqn=.*/.exec(lines[0] ?? '')?.[0];
  };
  const uuid = '4c4c4544-0035-3510-8052-b4c04f4a3132';
  const folder = join(node.root, 'etc/nvme');
  await rm(join(folder, 'hostid'));
  assert.equal(await connect(), `hostnqn=${hostNqn},hostid=7edba553-e59f-4d7d-94eb-372705cefb9f`);
  await rm(join(folder, 'hostnqn'));
  await node.add({ 'sys/class/dmi/id/product_uuid': `${uuid.toUpperCase()}\n` });
  assert.equal(await connect(), `hostnqn=nqn.2014-08.org.nvmexpress:uuid:${uuid},hostid=${uuid}`);
  const before = await readdir(folder);
  await node.add({ 'sys/class/dmi/id/product_uuid': '03000200-0400-0500-0006-000700080009\n' });
  await assert.rejects(node.attach({ ...context, nqn: `${nqn}2` }), {
    code: 'FAILED_PRECONDITION',
    message: /hostnqn is not there.*nvme gen-hostnqn/,
  });
  assert.deepEqual(await readdir(folder), before);
});

test('a device is known by the NQN and NSID that the kernel shows for it', async (t) => {
  const node = await machine(t);
  await node.add({
    ...joined,
    [`${subsystemFolder}/nvme0n2/nvme0n2p1/partition`]: '1\n',
    'sys/dev/block/4095:3': `-> ${subsystemFolder}/nvme0n2/nvme0n2p1`,
    // A disk of this machine.
    ...controller(
      'nvme9',
      '0000:01:00.0',
      { transport: 'pcie', subsysnqn: 'nqn.2019-08.com.example:disk' },
      'nvme-subsys9',
    ),
    ...disk('sys/class/nvme-subsystem/nvme-subsys9/nvme9n1', '4095:9', 1),
  });
  const { attacher } = node;
  assert.deepEqual(attacher.identityOf?.({ context, publishContext: {} }), { nqn, nsid: '1' });
  assert.deepEqual(await attacher.identify?.('4095:2'), { nqn, nsid: '1' });
  assert.deepEqual(await attacher.identify?.('4095:3'), { nqn, nsid: '1' });
  assert.deepEqual(await attacher.identify?.('4095:1'), { nqn, nsid: '2' });
  assert.equal(await attacher.identify?.('4095:9'), undefined);
  assert.equal(await attacher.identify?.('4095:77'), undefined);
});

test('only this subsystem’s connections end, and only when no other volume has them', async (t) => {
  const node = await machine(t);
  await node.add({
    ...joined,
    ...controller('nvme7', 'traddr=10.0.0.1,trsvcid=4420', { subsysnqn: `${nqn}2` }, 'nvme-subsys7'),
  });
  const detach = (others: readonly Files[]) =>
    node.attacher.detach?.(node.call, { nqn, nsid: '1' }, async () => others);
  await detach([{ nqn, nsid: '2' }]);
  assert.equal(node.commands.length, 0);
  await detach([
    { nqn, nsid: '1' },
    { nqn: `${nqn}2`, nsid: '1' },
  ]);
  const files = node.commands.flatMap(({ args }) => args.map((file) => file.split('/').slice(-2).join('/')));
  assert.deepEqual(files, ['nvme3/delete_controller', 'nvme4/delete_controller']);
  assert.equal(node.commands[0]?.input, '1');
  await detach([]);
  assert.equal(node.commands.length, 1);
});

test('a new size is asked for on every live connection, and waited for', async (t) => {
  const node = await machine(t);
  await node.add(joined);
  const size = join(node.root, subsystemFolder, 'nvme0n2/size');
  const asked = join(node.root, 'sys/devices/ctl/nvme3/rescan_controller');
  const read = () => readFile(asked, 'utf8').catch(() => '');
  await node.attacher.rescan?.(node.call, '4095:2', 2048 * 512);
  assert.equal(await read(), '');
  let done = false;
  const rescanned = node.attacher.rescan?.(node.call, '4095:2', 4096 * 512).then(() => {
    done = true;
  });
  while ((await read()) !== '1') await setImmediate();
  assert.equal(done, false);
  await writeFile(size, '4096\n');
  await rescanned;
});
