import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Machine, type ServeSettings, serveSettings } from '../../src/cli/serve-settings.ts';
import type { Flags } from '../../src/cli/setting-reader.ts';
import { CommandError, UsageError } from '../../src/cli/usage-error.ts';

const machine: Machine = {
  isRoot: true,
  home: '/root',
  hostName: 'host1',
  pid: 42,
  outIsTerminal: false,
  hasSystemConfig: false,
};

const settings = (flags: Flags, env: Record<string, string> = {}, on: Partial<Machine> = {}) =>
  serveSettings(flags, env, { ...machine, ...on });

const withConfig: Flags = { config: 'main.yaml', endpoint: ['/run/x.sock'] };

describe('precedence: flag, SWITCHBOARD_, DEMOCRATIC_CSI_, default', () => {
  const rows: readonly {
    setting: string;
    flag: Flags;
    pick: (of: ServeSettings) => unknown;
    values: readonly [flag: string, ours: string, theirs: string];
    expected: readonly [flag: unknown, ours: unknown, theirs: unknown, byDefault: unknown];
  }[] = [
    {
      setting: 'LOG_LEVEL',
      flag: { logLevel: 'debug' },
      pick: (of) => of.logLevel,
      values: ['debug', 'warn', 'silly'],
      expected: ['debug', 'warn', 'silly', 'info'],
    },
    {
      setting: 'CSI_NAME',
      flag: { csiName: 'a' },
      pick: (of) => of.csiName,
      values: ['a', 'b', 'c'],
      expected: ['a', 'b', 'c', 'org.switchboard.csi'],
    },
    {
      setting: 'CSI_VERSION',
      flag: { csiVersion: '1.1.0' },
      pick: (of) => of.specMinor,
      values: ['1.1.0', '1.5.0', '1.9.0'],
      expected: [1, 5, 9, 12],
    },
    {
      setting: 'CSI_MODE',
      flag: { csiMode: ['controller'] },
      pick: (of) => of.modes,
      values: ['controller', 'node', 'node,controller'],
      expected: [
        { controller: true, node: false },
        { controller: false, node: true },
        { controller: true, node: true },
        { controller: true, node: true },
      ],
    },
    {
      setting: 'SERVER_SOCKET_PERMISSIONS_MODE',
      flag: { serverSocketPermissionsMode: '0660' },
      pick: (of) => of.socketMode,
      values: ['0660', '0666', '640'],
      expected: [0o660, 0o666, 0o640, 0o600],
    },
    {
      setting: 'LOG_FORMAT',
      flag: { logFormat: 'text' },
      pick: (of) => of.logFormat,
      values: ['text', 'text', 'text'],
      expected: ['text', 'text', 'text', 'json'],
    },
    {
      setting: 'STOP_TIMEOUT',
      flag: { stopTimeout: '1' },
      pick: (of) => of.stopTimeoutMs,
      values: ['1', '2', '3'],
      expected: [1000, 2000, 3000, 30_000],
    },
    {
      setting: 'ALLOW_INSECURE_TCP',
      flag: { allowInsecureTcp: true },
      pick: (of) => of.allowInsecureTcp,
      values: ['true', '1', 'yes'],
      expected: [true, true, true, false],
    },
  ];
  for (const { setting, flag, pick, values, expected } of rows) {
    test(setting, () => {
      const [, ours, theirs] = values;
      const both = { [`SWITCHBOARD_${setting}`]: ours, [`DEMOCRATIC_CSI_${setting}`]: theirs };
      assert.deepEqual(pick(settings({ ...withConfig, ...flag }, both)), expected[0]);
      assert.deepEqual(pick(settings(withConfig, both)), expected[1]);
      assert.deepEqual(pick(settings(withConfig, { [`DEMOCRATIC_CSI_${setting}`]: theirs })), expected[2]);
      assert.deepEqual(pick(settings(withConfig)), expected[3]);
    });
  }

  test('an empty variable is one that is not set', () => {
    const env = { SWITCHBOARD_CSI_NAME: '', DEMOCRATIC_CSI_CSI_NAME: 'theirs' };
    assert.equal(settings(withConfig, env).csiName, 'theirs');
  });

  test('CSI_VERSION goes before the flag', () => {
    assert.equal(settings({ ...withConfig, csiVersion: '1.9.0' }, { CSI_VERSION: '1.2.0' }).specMinor, 2);
  });

  test('the configuration: both names of the flag, both prefixes, then the system’s', () => {
    const named = (env: Record<string, string>, on: Partial<Machine> = {}) =>
      settings({ endpoint: ['/x'] }, env, on).configPath;
    assert.equal(settings({ driverConfigFile: 'a', config: 'b', endpoint: ['/x'] }).configPath, 'a');
    assert.equal(named({ SWITCHBOARD_CONFIG: 'c', DEMOCRATIC_CSI_DRIVER_CONFIG_FILE: 'd' }), 'd');
    assert.equal(named({ SWITCHBOARD_DRIVER_CONFIG_FILE: 'e', DEMOCRATIC_CSI_DRIVER_CONFIG_FILE: 'd' }), 'e');
    assert.equal(named({}, { hasSystemConfig: true }), '/etc/switchboard/switchboard.yaml');
    assert.equal(named({}), undefined);
  });

  test('the node’s name', () => {
    assert.equal(settings(withConfig).nodeName, 'host1');
    assert.equal(settings(withConfig, { CSI_NODE_ID: 'worker-1' }).nodeName, 'worker-1');
  });
});

describe('endpoints', () => {
  const endpoints = (flags: Flags, env: Record<string, string> = {}, on: Partial<Machine> = {}) =>
    settings(flags, env, on).endpoints;

  test('all that are named, together', () => {
    const flags = { endpoint: ['tcp://[::1]:1'], serverSocket: '/run/a.sock', serverAddress: '::', serverPort: '9000' };
    assert.deepEqual(endpoints(flags), ['tcp://[::1]:1', 'unix:/run/a.sock', 'tcp://[::]:9000']);
  });

  test('CSI_ENDPOINT only when no other is named', () => {
    const env = { CSI_ENDPOINT: 'unix:///csi/csi.sock' };
    assert.deepEqual(endpoints({ config: 'x' }, env), ['unix:///csi/csi.sock']);
    assert.deepEqual(endpoints({ config: 'x', serverSocket: '/a' }, env), ['unix:/a']);
    assert.deepEqual(endpoints({ config: 'x' }, { ...env, DEMOCRATIC_CSI_SERVER_SOCKET: 'unix:///b' }), ['unix:///b']);
    assert.deepEqual(endpoints({}, env), ['unix:///csi/csi.sock']);
  });

  test('inherited sockets are enough, when they are for this process', () => {
    const env = { LISTEN_FDS: '2', LISTEN_PID: '42' };
    assert.deepEqual(endpoints({ config: 'x' }, env), ['systemd']);
    assert.deepEqual(endpoints({ config: 'x' }, { ...env, CSI_ENDPOINT: '/a' }), ['/a', 'systemd']);
    assert.deepEqual(endpoints({ config: 'x', endpoint: ['/b'] }, env), ['/b']);
    assert.throws(() => settings({ config: 'x' }, { ...env, LISTEN_FDS: '0' }), CommandError);
    assert.throws(() => settings({ config: 'x' }, { LISTEN_FDS: '2', LISTEN_PID: '41' }), CommandError);
  });

  test('a configuration that was named and no endpoint: the words that existing deployments look for', () => {
    assert.throws(() => settings({ driverConfigFile: 'x' }), {
      name: 'CommandError',
      message: 'must listen on tcp and/or unix socket',
      hint: /--server-socket/,
    });
    assert.throws(() => settings({ config: 'x', serverAddress: '127.0.0.1' }), CommandError);
    assert.throws(() => settings({ config: 'x', serverPort: '9000' }), CommandError);
  });

  test('half of an address is ignored when there is a socket', () => {
    assert.deepEqual(endpoints({ config: 'x', serverPort: '9000', serverSocket: '/a' }), ['unix:/a']);
  });

  test('without any configuration: a socket in the state directory', () => {
    assert.deepEqual(endpoints({}), ['unix:///var/lib/switchboard/csi.sock']);
    assert.deepEqual(endpoints({}, { SWITCHBOARD_STATE_DIR: '/s' }), ['unix:///s/csi.sock']);
    const user = { isRoot: false, home: '/home/u' };
    assert.deepEqual(endpoints({}, {}, user), ['unix:///home/u/.local/share/switchboard/csi.sock']);
  });

  test('with the system’s configuration: a socket where ctl looks', () => {
    assert.deepEqual(endpoints({}, {}, { hasSystemConfig: true }), ['unix:///run/switchboard/csi.sock']);
  });
});

describe('values that cannot be used', () => {
  const refused: readonly [string, Flags, RegExp][] = [
    ['log level', { logLevel: 'loud' }, /loud.*error, warn/],
    ['log format', { logFormat: 'xml' }, /xml/],
    ['mode', { csiMode: ['both'] }, /both/],
    ['port', { serverPort: '70000', serverAddress: '::1' }, /70000/],
    ['socket mode', { serverSocketPermissionsMode: 'rw' }, /octal/],
    ['stop timeout', { stopTimeout: '-1' }, /-1/],
    ['half a certificate', { serverTlsCert: 'c' }, /--server-tls-key and --server-tls-client-ca/],
  ];
  for (const [name, flags, message] of refused) {
    test(name, () => assert.throws(() => settings({ ...withConfig, ...flags }), { name: UsageError.name, message }));
  }

  for (const version of ['0.2.0', '0.3.0', '1.13.0', '2.0.0', 'x']) {
    test(`CSI version ${version}`, () => {
      assert.throws(() => settings({ ...withConfig, csiVersion: version }), {
        name: 'CommandError',
        message: `CSI version "${version}" is not served`,
      });
    });
  }

  test('every version of the specification that there is, is served', () => {
    for (let minor = 0; minor <= 12; minor++) {
      assert.equal(settings({ ...withConfig, csiVersion: `1.${minor}.0` }).specMinor, minor);
    }
  });
});

describe('the log’s format', () => {
  test('text where a person looks, unless production is declared', () => {
    assert.equal(settings(withConfig, {}, { outIsTerminal: true }).logFormat, 'text');
    assert.equal(settings(withConfig, { NODE_ENV: 'production' }, { outIsTerminal: true }).logFormat, 'json');
  });
});
