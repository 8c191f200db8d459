import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { clientTarget, defaultEndpoint } from '../../src/cli/client-target.ts';

describe('what clients connect to', () => {
  const rows: readonly [text: string, address: string, shown: string, isLocal: boolean][] = [
    ['/run/csi.sock', 'unix:/run/csi.sock', 'unix:///run/csi.sock', true],
    ['unix:///run/csi.sock', 'unix:/run/csi.sock', 'unix:///run/csi.sock', true],
    ['unix:/run/csi.sock', 'unix:/run/csi.sock', 'unix:///run/csi.sock', true],
    ['unix:csi.sock', `unix:${process.cwd()}/csi.sock`, `unix://${process.cwd()}/csi.sock`, true],
    ['tcp://127.0.0.1:9000', '127.0.0.1:9000', 'tcp://127.0.0.1:9000', false],
    ['nas.example:9000', 'nas.example:9000', 'tcp://nas.example:9000', false],
    [':9000', '127.0.0.1:9000', 'tcp://127.0.0.1:9000', false],
    ['tcp://[::1]:9000', '[::1]:9000', 'tcp://[::1]:9000', false],
    ['0.0.0.0:9000', '127.0.0.1:9000', 'tcp://127.0.0.1:9000', false],
    ['tcp://[::]:9000', '[::1]:9000', 'tcp://[::1]:9000', false],
  ];
  for (const [text, address, shown, isLocal] of rows) {
    test(text, () => assert.deepEqual(clientTarget(text), { address, shown, isLocal }));
  }

  for (const text of ['', 'localhost', 'http://x:1', 'tcp://x', 'a b:1', '::1:9000', 'unix:', 'systemd']) {
    test(`"${text}" is refused`, () => assert.throws(() => clientTarget(text), { name: 'UsageError' }));
  }
});

describe('without an endpoint', () => {
  const account = { isRoot: true, home: '/root' };

  test('the variables that servers listen by', async () => {
    assert.equal(await defaultEndpoint({ CSI_ENDPOINT: 'unix:///a' }, account), 'unix:///a');
    assert.equal(await defaultEndpoint({ CSI_ENDPOINT: '/a', SWITCHBOARD_ENDPOINT: '/b, tcp://c:1' }, account), '/b');
  });

  test('the socket in the state directory', async (t) => {
    const state = await mkdtemp(join(tmpdir(), 'cli-'));
    t.after(() => rm(state, { recursive: true }));
    await writeFile(join(state, 'csi.sock'), '');
    const found = await defaultEndpoint({ SWITCHBOARD_STATE_DIR: state }, account);
    assert.equal(found, `unix://${state}/csi.sock`);
  });
});
