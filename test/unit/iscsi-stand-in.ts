/**
 * A machine with open-iscsi, multipathd and a kernel, and the targets that it can reach: sysfs and the files of iscsiadm's records are folders, the
 * programs take what their manuals say and nothing else.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { Command, CommandOutput } from '../../src/backends/exec/run.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { detachedContext, type Secrets } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { createIscsi } from '../../src/node/attachers/iscsi/iscsi.ts';
import { settingIn, withSettings } from '../../src/node/attachers/iscsi/node-record.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';

type Luns = Record<number, { wwid: string; bytes: number }>;

interface StandInTarget {
  /** Portals that answer, as iscsiadm is told them. */
  portals: string[];
  /** By the number that the kernel knows them by. */
  luns: Luns;
  /** Where a portal has others. */
  lunsAt?: Record<string, Luns>;
  password?: string | undefined;
}

const iscsidConf = [
  'node.startup = automatic',
  'node.session.timeo.replacement_timeout = 77',
  'node.session.scan = auto',
];

export async function iscsiMachine(t: TestContext, database = '/var/lib/iscsi') {
  const folder = await mkdtemp(join(tmpdir(), 'iscsi-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const sysfs = join(folder, 'sys');
  const root = join(folder, 'root');
  const nodes = join(root, database, 'nodes');
  await write(join(root, 'etc/iscsi/iscsid.conf'), iscsidConf.join('\n'));
  for (const kind of ['iscsi_session', 'iscsi_connection', 'scsi_host', 'block']) {
    await mkdir(join(sysfs, 'class', kind), { recursive: true });
  }
  await mkdir(join(sysfs, 'dev/block'), { recursive: true });

  const targets: Record<string, StandInTarget> = {};
  const commands: Command[] = [];
  const inUse = new Set<string>();
  const opened = new Set<string>();
  const held = new Set<string>();
  const state = { iscsid: true, multipathd: false, sessions: 0, disks: 0, maps: 0, mounts: '' };
  const sessions = new Map<number, { readonly iqn: string; readonly portal: string; readonly directory: string }>();

  async function iscsiadm(args: readonly string[]): Promise<string> {
    const line = args.join(' ');
    const [, id] = /^-m session -r (\d+) -u$/.exec(line) ?? [];
    if (id !== undefined) return await logout(Number(id));
    const [, iqn = '', portal = '', name = 'default', what] =
      /^-m node -T (\S+) -p (\S+?:\d+)(?: -I (\S+))? (-o new|-l)$/.exec(line) ?? [];
    if (what === undefined) fail('iscsiadm', 7, `unknown arguments ${line}`);
    const { host, port } = split(portal);
    const file = join(nodes, iqn, `${host},${port}`);
    if (what === '-o new') {
      const lines = ['# BEGIN RECORD 2.1.11', `node.name = ${iqn}`, `iface.iscsi_ifacename = ${name}`, ...iscsidConf];
      const where = [`node.conn[0].address = ${host}`, `node.conn[0].port = ${port}`, '# END RECORD', ''];
      await write(file, [...lines, ...where].join('\n'));
      return `New iSCSI node ${iqn} added`;
    }
    const record = await readFile(file, 'utf8').catch(() => fail('iscsiadm', 21, 'No records found'));
    return await login(iqn, portal, record);
  }

  async function login(iqn: string, portal: string, record: string): Promise<string> {
    if (!state.iscsid) fail('iscsiadm', 20, 'can not connect to iSCSI daemon (111)!');
    const target = targets[iqn];
    if (!target?.portals.includes(portal)) {
      fail('iscsiadm', 8, 'initiator reported error (8 - connection timed out)');
    }
    const password = settingIn(record, 'node.session.auth.password');
    if (target.password !== undefined && password !== target.password) {
      fail('iscsiadm', 24, 'initiator reported error (24 - iSCSI login failed due to authorization failure)');
    }
    const number = ++state.sessions;
    const directory = join(sysfs, `devices/platform/host${number}/session${number}`);
    const { host, port } = split(portal);
    await mkdir(join(directory, `connection${number}:0`), { recursive: true });
    const entry = join(sysfs, `class/iscsi_session/session${number}`);
    const about = {
      targetname: iqn,
      state: 'LOGGED_IN',
      ifacename: settingIn(record, 'iface.iscsi_ifacename') ?? '',
      target_id: '0',
    };
    for (const [name, value] of Object.entries(about)) await write(join(entry, name), `${value}\n`);
    await symlink(directory, join(entry, 'device'));
    const connection = join(sysfs, `class/iscsi_connection/connection${number}:0`);
    await write(join(connection, 'persistent_address'), `${host}\n`);
    await write(join(connection, 'persistent_port'), `${port}\n`);
    await write(join(sysfs, `class/scsi_host/host${number}/scan`), '');
    sessions.set(number, { iqn, portal, directory });
    if (settingIn(record, 'node.session.scan') === 'auto') {
      for (const code of Object.keys(target.luns)) await find(number, Number(code));
    }
    return `Login to ${iqn} successful.`;
  }

  async function logout(number: number): Promise<string> {
    if (!state.iscsid) fail('iscsiadm', 18, 'could not communicate to iscsid');
    const session = sessions.get(number) ?? fail('iscsiadm', 21, 'No matching sessions found');
    for (const unit of await readdir(join(session.directory, 'target0:0:0')).catch(() => [])) {
      await lose(join(session.directory, 'target0:0:0', unit));
    }
    await rm(join(sysfs, `class/iscsi_session/session${number}`), { recursive: true });
    sessions.delete(number);
    return 'Logout successful.';
  }

  function lunOf(number: number, code: number) {
    const { iqn = '', portal = '' } = sessions.get(number) ?? {};
    return (targets[iqn]?.lunsAt?.[portal] ?? targets[iqn]?.luns)?.[code];
  }

  /** The kernel finds a unit. */
  async function find(number: number, code: number): Promise<void> {
    const session = sessions.get(number);
    const lun = lunOf(number, code);
    if (!session || !lun) return;
    const unit = join(session.directory, `target0:0:0/${number}:0:0:${code}`);
    if ((await readdir(unit).catch(() => [])).length > 0) return;
    const index = ++state.disks;
    const name = `sd${String.fromCharCode(96 + index)}`;
    const block = join(unit, 'block', name);
    await write(join(unit, 'state'), 'running\n');
    for (const file of ['rescan', 'delete']) await write(join(unit, file), '');
    await write(join(block, 'dev'), `8:${16 * index}\n`);
    await mkdir(join(block, 'holders'));
    await learn(unit, lun);
    await symlink(block, join(sysfs, 'class/block', name));
    await symlink(block, join(sysfs, `dev/block/8:${16 * index}`));
  }

  async function learn(unit: string, lun: { wwid: string; bytes: number } | undefined): Promise<void> {
    const [name = ''] = await readdir(join(unit, 'block'));
    await write(join(unit, 'block', name, 'size'), `${(lun?.bytes ?? 0) / 512}\n`);
    if (lun) await write(join(unit, 'wwid'), `${lun.wwid}\n`);
  }

  async function lose(unit: string): Promise<void> {
    const [name = ''] = await readdir(join(unit, 'block'));
    const number = (await readFile(join(unit, 'block', name, 'dev'), 'utf8')).trim();
    await rm(join(sysfs, 'class/block', name));
    await rm(join(sysfs, 'dev/block', number));
    await rm(unit, { recursive: true });
  }

  async function tee([path = '', ...more]: readonly string[], input: string): Promise<string> {
    assert.deepEqual(more, []);
    const [, host, unit, attribute = ''] =
      /\/(?:scsi_host\/host(\d+)|(?:host\d+\/session\d+)\/target0:0:0\/([^/]+))\/(scan|rescan|delete)$/.exec(path) ??
      [];
    if (attribute === 'scan') {
      const [, code] = /^0 (?:-|\d+) (\d+)$/.exec(input) ?? fail('tee', 1, 'Invalid argument');
      await find(Number(host), Number(code));
      return input;
    }
    if (unit === undefined || input !== '1') return fail('tee', 1, 'Invalid argument');
    const [number = 0, code = 0] = [unit.split(':')[0], unit.split(':')[3]].map(Number);
    if (attribute === 'delete') await lose(dirname(path));
    else await learn(dirname(path), lunOf(number, code));
    return input;
  }

  async function multipathd(args: readonly string[]): Promise<string> {
    if (!state.multipathd) fail('multipathd', 1, 'ERROR: failed to connect to multipathd');
    const line = args.join(' ');
    if (line === 'show daemon') return 'pid 1 idle\n';
    const [, wwid] = /^add map (\S+)$/.exec(line) ?? fail('multipathd', 1, `unknown command ${line}`);
    const map = join(sysfs, 'devices/virtual/block', `dm-${state.maps}`);
    for (const name of await readdir(join(sysfs, 'class/block'))) {
      const own = await readFile(`${join(sysfs, 'class/block', name)}/../../wwid`, 'utf8').catch(() => '');
      if (own.trim() !== `naa.${wwid?.slice(1)}` || held.has(name)) continue;
      await write(join(map, 'slaves', name), '');
      await write(join(sysfs, 'class/block', name, 'holders', `dm-${state.maps}`), '');
    }
    await write(join(map, 'dm/uuid'), `mpath-${wwid}\n`);
    await write(join(map, 'dm/name'), `${wwid}\n`);
    await write(join(map, 'dev'), `254:${state.maps}\n`);
    await symlink(map, join(sysfs, 'class/block', `dm-${state.maps}`));
    await symlink(map, join(sysfs, `dev/block/254:${state.maps}`));
    return 'ok\n';
  }

  async function flush(args: readonly string[]): Promise<string> {
    const map = join(sysfs, 'devices/virtual/block', `dm-${state.maps}`);
    if (args[0] !== '-f' || args[1] !== (await readFile(join(map, 'dm/name'), 'utf8')).trim()) fail('multipath', 1, '');
    for (const name of await readdir(join(map, 'slaves'))) {
      await rm(join(sysfs, 'class/block', name, 'holders', `dm-${state.maps}`));
    }
    for (const link of [`class/block/dm-${state.maps}`, `dev/block/254:${state.maps}`]) await rm(join(sysfs, link));
    await rm(map, { recursive: true });
    state.maps++;
    return '';
  }

  const programs: Readonly<Record<string, (args: readonly string[], input: string) => Promise<string>>> = {
    iscsiadm,
    tee,
    multipathd,
    multipath: flush,
  };
  const run = Object.assign(
    async (_call: unknown, command: Command): Promise<CommandOutput> => {
      commands.push(command);
      const program = programs[command.program] ?? fail(command.program, 127, 'not found');
      try {
        return { code: 0, stdout: await program(command.args, command.input ?? ''), stderr: '' };
      } catch (error) {
        if (!(error instanceof CommandFailed) || !command.accept || command.accept === 'any') throw error;
        if (error.exitCode === null || !command.accept.includes(error.exitCode)) throw error;
        return { code: error.exitCode, stdout: '', stderr: error.stderr };
      }
    },
    // Without a network of its own, nothing is connected to.
    { placeOf: async () => ({ root, ownNetwork: false }) },
  );
  const readTable = async () => parseMountTable(state.mounts);
  const tools = { run, limits: defaultTimeLimits, settings: {}, readTable, sysfs };
  const refuseInUse = async (_call: unknown, device: string) => {
    if (inUse.has(device)) throw new CallError('FAILED_PRECONDITION', `${device} is in use`);
  };
  const refuseOpen = async (_call: unknown, device: string) => {
    if (opened.has(device)) throw new CallError('FAILED_PRECONDITION', `${device} is open`);
  };
  const deviceNode = async (_call: unknown, _tools: unknown, name: string) => `/dev/${name}`;
  const attacher = createIscsi(tools, { refuseInUse, refuseOpen, deviceNode });
  return {
    attacher,
    targets,
    commands,
    /** Numbers of devices that somebody uses. */
    inUse,
    /** Numbers of devices that somebody has opened for writing, and no more than that. */
    opened,
    /** Names of disks that multipathd cannot have. */
    held,
    state,
    nodes,
    sysfs,
    run: (command: Pick<Command, 'program' | 'args'>) => run(undefined, { ...command, timeoutMs: 1000 }),
    /** The kernel finds that a session is lost, or back. */
    setState: (session: number, to: string) => write(join(sysfs, `class/iscsi_session/session${session}/state`), to),
    /** Of a session. */
    logout,
    /** As an administrator does it: all LUNs are looked for. Gives the path of the record. */
    async logInByHand(iqn: string, portal: string): Promise<string> {
      const args = ['-m', 'node', '-T', iqn, '-p', portal];
      await run(undefined, { program: 'iscsiadm', args: [...args, '-o', 'new'], timeoutMs: 1000 });
      const { host, port } = split(portal);
      const path = join(nodes, iqn, `${host},${port}`);
      await writeFile(path, withSettings(await readFile(path, 'utf8'), { 'node.startup': 'manual' }));
      await run(undefined, { program: 'iscsiadm', args: [...args, '-l'], timeoutMs: 1000 });
      return path;
    },
    /** What was run, without the arguments. */
    ran: () => commands.splice(0).map(({ program }) => program),
    sessions: () => [...sessions.values()].map(({ iqn }) => iqn),
    async records(): Promise<readonly string[]> {
      const found = await readdir(nodes, { recursive: true, withFileTypes: true }).catch(() => []);
      return found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
    },
    attach: (context: Readonly<Record<string, string>>, secrets: Secrets = {}) =>
      attacher.attach(
        { ...detachedContext(silentLogger), secrets },
        {
          volumeId: 'v',
          context,
          publishContext: {},
          capability: { type: 'block', mode: 'SINGLE_NODE_WRITER' },
          table: parseMountTable(''),
        },
      ),
    detach: (iqn: string, lun: string, others: readonly Readonly<Record<string, string>>[] = []) =>
      attacher.detach?.(detachedContext(silentLogger), { iqn, lun }, async () => others),
  };
}

function split(portal: string): { readonly host: string; readonly port: string } {
  const at = portal.lastIndexOf(':');
  return { host: portal.slice(0, at).replace(/^\[|\]$/g, ''), port: portal.slice(at + 1) };
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

function fail(program: string, exitCode: number, stderr: string): never {
  throw new CommandFailed({ program, exitCode, signal: null, stdout: '', stderr });
}
