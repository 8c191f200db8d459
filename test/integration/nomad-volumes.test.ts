import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseMainConfig } from '../../src/cli/main-config.ts';
import { startServer } from '../../src/cli/server.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { switchboard } from '../unit/cli-shell.ts';
import { parseHcl } from '../unit/hcl.ts';

async function makeServer(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'nomad-volumes-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(
    join(folder, 'fast.yaml'),
    `driver: local-hostpath\nlocal-hostpath: { shareBasePath: ${folder}/data, controllerBasePath: ${folder}/data }\n`,
  );
  const endpoint = `unix://${folder}/csi.sock`;
  const server = await startServer({
    config: parseMainConfig(
      `driver: proxy\nproxy: { configFolder: ${folder}, nodeTopology: { type: node } }\n`,
      'm',
      {},
    ),
    settings: {
      csiName: 'org.example.test',
      nodeName: 'node1',
      specMinor: 12,
      modes: { controller: true, node: true },
      endpoints: [endpoint],
      socketMode: 0o600,
      tls: undefined,
      allowInsecureTcp: false,
    },
    env: process.env,
    log: silentLogger,
  });
  t.after(() => server.stop(0));
  const ctl = (...args: string[]) => switchboard(['ctl', ...args], { CSI_ENDPOINT: endpoint });
  const ids = async () =>
    (JSON.parse((await ctl('list', '--json')).out).volumes as { id: string }[]).map(({ id }) => id);
  return { folder, ctl, ids };
}

test('a volume is made and printed for Nomad', async (t) => {
  const { folder, ctl, ids } = await makeServer(t);
  const args = ['create', 'quote"${x}', '--connection', 'fast', '--size', '1Gi', '--format', 'nomad'];
  const { out, code, err } = await ctl(...args, '--access', 'multi-node-multi-writer', '--secret', 'key=value');
  assert.equal(code, 0, err);
  assert.ok(!out.includes('value'));
  const [id = ''] = await ids();
  const { attributes, blocks } = parseHcl(out);
  assert.deepEqual(attributes, {
    id: 'quote"${x}',
    name: 'quote"${x}',
    type: 'csi',
    plugin_id: 'org.example.test',
    external_id: id,
    capacity_min: '1GiB',
  });
  const values = Object.fromEntries(blocks.map(({ type, attributes: inner }) => [type, inner]));
  assert.equal(values.capability?.access_mode, 'multi-node-multi-writer');
  assert.deepEqual(values.parameters, { connection: 'fast' });
  assert.equal(values.context?.path, join(folder, 'data', 'v', id.slice('v:fast/'.length)));

  const request = JSON.parse((await ctl(...args, '--json', '--plugin-id', 'other', '--namespace', 'apps')).out);
  const [volume] = request.Volumes;
  assert.deepEqual([volume.ExternalID, volume.PluginID, volume.Namespace], [id, 'other', 'apps']);
  assert.deepEqual(volume.RequestedTopologies.Required, [
    { Segments: { 'org.democratic-csi.topology/node': 'node1' } },
  ]);
});

test('so is a copy; other formats are refused', async (t) => {
  const { ctl } = await makeServer(t);
  assert.equal((await ctl('create', 'one', '--connection', 'fast', '--size', '1Mi')).code, 0);
  const { out } = await ctl('clone', 'v:fast/one', 'two', '--size', '1Mi', '--format', 'nomad');
  const { attributes, blocks } = parseHcl(out);
  assert.deepEqual([attributes.external_id, attributes.clone_id], ['v:fast/two', undefined]);
  assert.deepEqual(blocks.find(({ type }) => type === 'parameters')?.attributes, { connection: 'fast' });
  assert.equal((await ctl('create', 'x', '--connection', 'fast', '--format', 'xml')).code, 2);
});

test('an access mode that Nomad lacks is refused before anything is made', async (t) => {
  const { ctl, ids } = await makeServer(t);
  const { code, err } = await ctl('create', 'x', '--connection', 'fast', '--format', 'nomad', '--access', 'rwop');
  assert.equal(code, 2);
  assert.match(err, /Nomad has no access mode like "rwop"/);
  assert.deepEqual(await ids(), []);
});

test('a set for per_alloc is made, completed and found again', async (t) => {
  const { folder, ctl, ids } = await makeServer(t);
  const set = (...more: string[]) => ctl('nomad-volumes', 'web', '--connection', 'fast', '--size', '1Mi', ...more);
  const out = join(folder, 'files');

  assert.equal((await set('--count', '2', '--dry-run', '--out', out)).code, 0);
  assert.deepEqual(await ids(), []);
  const dry = await readFile(join(out, 'web-1.volume.hcl'), 'utf8');
  assert.match(dry, /^# nomad volume create /);
  assert.deepEqual([parseHcl(dry).attributes.name, parseHcl(dry).attributes.external_id], ['web[1]', undefined]);

  assert.equal((await set('--count', '2')).code, 0);
  assert.deepEqual(await ids(), ['v:fast/web.5b0.5d', 'v:fast/web.5b1.5d']);
  const { out: told } = await set('--count', '3', '--out', out);
  assert.match(told, /^web\[2\]: nomad volume register .*\/web-2\.volume\.hcl$/m);
  assert.deepEqual((await readdir(out)).sort(), ['web-0.volume.hcl', 'web-1.volume.hcl', 'web-2.volume.hcl']);
  const file = parseHcl(await readFile(join(out, 'web-2.volume.hcl'), 'utf8'));
  assert.deepEqual([file.attributes.id, file.attributes.external_id], ['web[2]', 'v:fast/web.5b2.5d']);
  const { Volumes } = JSON.parse((await set('--count', '3', '--json')).out);
  assert.deepEqual(
    Volumes.map(({ ID }: { ID: string }) => ID),
    ['web[0]', 'web[1]', 'web[2]'],
  );

  // The names are shown where they can be read back.
  assert.match((await ctl('list')).out, /^v:fast\/web\.5b1\.5d +web\[1\] /m);
  assert.equal(JSON.parse((await ctl('get', 'v:fast/web.5b1.5d', '--json')).out).name, 'web[1]');

  // A set that differs from what is there is not taken for it.
  const other = await ctl('nomad-volumes', 'web', '--connection', 'fast', '--size', '2Mi', '--count', '1');
  assert.equal(other.code, 1);
  assert.match(other.err, /ALREADY_EXISTS/);
});
