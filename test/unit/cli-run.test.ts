import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { switchboard } from './cli-shell.ts';

const commands = ['serve', 'check', 'probe', 'topology', 'drivers', 'ctl'];

describe('the command line', () => {
  test('--help names every command', async () => {
    for (const args of [['--help'], ['-h'], ['help']]) {
      const { code, out } = await switchboard(args);
      assert.equal(code, 0);
      for (const name of commands) assert.match(out, new RegExp(`^  ${name} +[A-Z]`, 'm'));
    }
  });

  for (const name of commands) {
    test(`${name} --help`, async () => {
      const { code, out, err } = await switchboard([name, '--help']);
      assert.deepEqual([code, err], [0, '']);
      assert.match(out, new RegExp(`^Usage: switchboard ${name} .*\\n\\n[A-Z]`));
      assert.match(out, /Examples:\n {2}(CSI_NODE_ID=\S+ )?switchboard/);
      assert.deepEqual(await switchboard(['help', name]), { code, out, err });
    });
  }

  test('--version has version and commit', async () => {
    const { code, out } = await switchboard(['--version']);
    assert.equal(code, 0);
    assert.match(out, /^switchboard \d+\.\d+\.\d+ \(\w+\)\n$/);
  });

  test('an unknown command: the nearest one, exit code 2', async () => {
    const { code, out, err } = await switchboard(['chekc', 'x.yaml']);
    assert.deepEqual([code, out], [2, '']);
    assert.equal(err, 'error: unknown command "chekc"\nDid you mean "switchboard check"?\n');
    assert.match((await switchboard(['frobnicate'])).err, /switchboard --help/);
  });

  test('words that every object knows are not commands', async () => {
    assert.equal((await switchboard(['constructor'])).code, 2);
    assert.equal((await switchboard(['__proto__'])).code, 2);
  });

  test('an unknown option: the nearest one, exit code 2', async () => {
    for (const args of [
      ['serve', '--log-levle', 'x'],
      ['--log-levle', 'x'],
    ]) {
      const { code, err } = await switchboard(args);
      assert.equal(code, 2);
      assert.match(err, /unknown option '--log-levle'\n.*--log-level/);
    }
  });

  test('serve is the default, and takes every flag of existing deployments', async () => {
    const flags =
      '--driver-config-file /does/not/exist.yaml --log-level debug --csi-version 1.9.0 --csi-name org.example ' +
      '--csi-mode controller --csi-mode=node --server-address 127.0.0.1 --server-port 9000 ' +
      '--server-socket /does/not/exist.sock --server-socket-permissions-mode 0666';
    for (const args of [flags.split(' '), ['serve', ...flags.split(' ')]]) {
      const { code, err } = await switchboard(args);
      assert.equal(code, 1);
      assert.match(err, /^\/does\/not\/exist\.yaml: error: cannot read the configuration: there is no such file\n$/);
    }
  });

  test('a named configuration without an endpoint', async () => {
    const { code, err } = await switchboard(['--driver-config-file', 'x.yaml']);
    assert.equal(code, 1);
    assert.match(err, /^error: must listen on tcp and\/or unix socket\n.*--server-socket/);
  });
});
