import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { switchboard } from './cli-shell.ts';

const good = 'driver: local-hostpath\nlocal-hostpath:\n  shareBasePath: /srv/v\n  controllerBasePath: $BASE\n';
const misspelled = `${good}  dirPermissionMode: "0777"\n`;
const wrong = 'driver: local-hostpath\nlocal-hostpath:\n  shareBasePath: [1]\n  controllerBasePath: /srv/v\n';

async function folder(t: TestContext, files: Record<string, string>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'cli-check-'));
  t.after(() => rm(path, { recursive: true }));
  await mkdir(join(path, 'connections'));
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(path, name), text.replaceAll('HERE', path));
  }
  return path;
}

const main =
  'driver: proxy\nproxy:\n  configFolder: HERE/connections\n  nodeTopology: { type: node }\nnode:\n  mount:\n    mount_flags: noatime\n';
const env = { BASE: '/srv/v' };

describe('check', () => {
  test('a main file brings its connections along', async (t) => {
    const path = await folder(t, { 'main.yaml': main, 'connections/nas.yaml': good });
    const { code, out } = await switchboard(['check', join(path, 'main.yaml')], env);
    assert.equal(code, 0, out);
    assert.equal(
      out,
      `${path}/main.yaml: ok, driver proxy\n` +
        `${path}/connections/nas.yaml: ok, connection nas, driver local-hostpath\n` +
        '2 files, 0 errors, 0 warnings\n',
    );
  });

  test('errors and warnings with their place; exit code 1 for errors only', async (t) => {
    const path = await folder(t, { 'connections/a.yaml': misspelled, 'connections/b.yaml': wrong });
    const both = await switchboard(['check', join(path, 'connections')], env);
    assert.equal(both.code, 1);
    assert.match(both.out, /connections\/a\.yaml:5:3: warning: unknown key dirPermissionMode.*dirPermissionsMode/);
    assert.match(both.out, /connections\/a\.yaml: ok, connection a/);
    assert.match(both.out, /connections\/b\.yaml:3:18: error: expected .*local-hostpath\.shareBasePath/);
    assert.doesNotMatch(both.out, /b\.yaml: ok/);
    assert.match(both.out, /2 files, 1 error, 1 warning\n$/);
    const warned = await switchboard(['check', join(path, 'connections/a.yaml')], env);
    assert.equal(warned.code, 0);
  });

  test('a folder that its main file brings along is not checked twice, in whatever order they are named', async (t) => {
    const path = await folder(t, { 'main.yaml': main, 'connections/nas.yaml': good });
    const { out } = await switchboard(['check', join(path, 'connections'), join(path, 'main.yaml'), '--json'], env);
    const { files } = JSON.parse(out);
    assert.deepEqual(
      files.map((file: { file: string }) => file.file),
      [`${path}/main.yaml`, `${path}/connections/nas.yaml`],
    );
  });

  test('--json', async (t) => {
    const path = await folder(t, { 'connections/b.yaml': wrong });
    const { code, out } = await switchboard(['check', join(path, 'connections'), '--json']);
    assert.equal(code, 1);
    const { ok, files } = JSON.parse(out);
    assert.equal(ok, false);
    const [file] = files;
    assert.equal(file.connection, 'b');
    const [{ severity, line, column, path: key }] = file.problems;
    assert.deepEqual([severity, line, column, key], ['error', 3, 18, 'local-hostpath.shareBasePath']);
    assert.equal('config' in file, false);
  });

  test('--print shows variables expanded, what is inherited, and nothing of what the schema does not know', async (t) => {
    const path = await folder(t, {
      'main.yaml': main,
      'connections/nas.yaml': `${good}  pasword: hunter2\n`,
    });
    const { out } = await switchboard(['check', '--print', join(path, 'main.yaml')], env);
    assert.match(out, /controllerBasePath: \/srv\/v/);
    assert.match(out, /nas\.yaml: ok[^\n]*\n( {2}[^\n]*\n)*? {2}node:\n {4}mount:\n {6}mount_flags:/);
    assert.doesNotMatch(out, /hunter2/);
    const { out: json } = await switchboard(['check', '--print', '--json', join(path, 'main.yaml')], env);
    assert.equal(JSON.parse(json).files[1].config['local-hostpath'].controllerBasePath, '/srv/v');
    assert.doesNotMatch(json, /hunter2/);
  });

  test('files that are not there, and no files at all', async () => {
    const { code, out } = await switchboard(['check', '/does/not/exist.yaml']);
    assert.equal(code, 1);
    assert.match(out, /^\/does\/not\/exist\.yaml: error: .*no such file\n1 file, 1 error, 0 warnings\n$/);
    assert.equal((await switchboard(['check'])).code, 2);
  });

  test('a rule that can never work is an error of the main file', async (t) => {
    const rules = '  nodeTopology:\n    type: custom\n    customRules:\n    - { keySuffix: zone, matchRegexp: "(" }\n';
    const path = await folder(t, {
      'main.yaml': `driver: proxy\nproxy:\n  configFolder: HERE/connections\n${rules}`,
    });
    const { code, out } = await switchboard(['check', join(path, 'main.yaml')]);
    assert.equal(code, 1, out);
    assert.match(out, /main\.yaml: error: .*regular expression/);
  });
});

describe('topology', () => {
  const zones = `driver: proxy
proxy:
  configFolder: HERE/connections
  nodeId:
    parts: { nodeName: true, hostname: false }
  nodeTopology:
    type: custom
    customRules:
    - { keySuffix: rack, source: nodeName, matchRegexp: '.*-(r\\d+)', resultTemplate: '\${match:1}' }
    - { keySuffix: zone, source: env, envName: ZONE }
`;

  test('what the node reports, and the rule that made it', async (t) => {
    const path = await folder(t, { 'main.yaml': zones });
    const args = ['topology', '--config', join(path, 'main.yaml')];
    const { code, out } = await switchboard(args, { CSI_NODE_ID: 'worker-r7' });
    assert.equal(code, 0);
    assert.match(out, /^node id +n=worker-r7 +\(11 of 256 bytes\)$/m);
    assert.match(out, /^made of +nodeName worker-r7$/m);
    assert.match(out, /^rule 1 \(rack from nodeName\) +org\.democratic-csi\.topology\/rack=r7$/m);
    assert.match(out, /^rule 2 \(zone from env ZONE\) .*skipped.*ZONE is not set$/m);
    const { out: json } = await switchboard([...args, '--json'], { CSI_NODE_ID: 'worker-r7', ZONE: 'a' });
    const node = JSON.parse(json);
    assert.deepEqual(node.topology, {
      'org.democratic-csi.topology/rack': 'r7',
      'org.democratic-csi.topology/zone': 'a',
    });
    assert.deepEqual([node.nodeId, node.nodeIdBytes, node.parts], ['n=worker-r7', 11, { nodeName: 'worker-r7' }]);
    assert.equal(node.rules.length, 2);
  });

  test('the host name is that of the host, within a container too', async (t) => {
    const path = await folder(t, { 'main.yaml': zones, name: 'web-r3\n' });
    const env = { SWITCHBOARD_HOST_NAME_FILE: join(path, 'name') };
    const { out } = await switchboard(['topology', '--config', join(path, 'main.yaml'), '--json'], env);
    assert.deepEqual(JSON.parse(out).topology, { 'org.democratic-csi.topology/rack': 'r3' });
  });

  test('a direct driver', async (t) => {
    const path = await folder(t, { 'main.yaml': good });
    const env = { BASE: '/srv/v', CSI_NODE_ID: 'n1' };
    const { code, out } = await switchboard(['topology', '--config', join(path, 'main.yaml'), '--json'], env);
    assert.equal(code, 0);
    const { nodeId, topology } = JSON.parse(out);
    assert.deepEqual([nodeId, topology], ['n1', { 'org.democratic-csi.topology/node': 'n1' }]);
  });

  test('a node that cannot be described: why, and exit code 1', async (t) => {
    const path = await folder(t, { 'main.yaml': zones });
    const args = ['topology', '--config', join(path, 'main.yaml')];
    const { code, err } = await switchboard(args, { CSI_NODE_ID: `${'x'.repeat(300)}` });
    assert.equal(code, 1);
    assert.match(err, /^error: the node id has 302 bytes/);
  });
});

describe('drivers', () => {
  test('a table, one of them, and JSON', async () => {
    const { code, out } = await switchboard(['drivers']);
    assert.equal(code, 0);
    assert.match(out, /^DRIVER +CREATE +LIST/);
    assert.match(out, /^local-hostpath +yes +yes .* online /m);
    assert.match(out, /^proxy /m);
    assert.match((await switchboard(['drivers', 'local-hostpath'])).out, /^ {2}driver: local-hostpath$/m);
    const { drivers } = JSON.parse((await switchboard(['drivers', '--json'])).out);
    for (const driver of drivers) {
      assert.deepEqual(Object.keys(driver), ['name', 'summary', 'example', 'capabilities']);
      assert.ok(Array.isArray(driver.capabilities.controller));
    }
  });

  test('an unknown one: the nearest', async () => {
    const { code, err } = await switchboard(['drivers', 'local-hostpaht']);
    assert.equal(code, 2);
    assert.match(err, /Did you mean local-hostpath\?/);
  });
});
