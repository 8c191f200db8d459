import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Command } from 'commander';
import { parseMainConfig, schemaNamed } from '../../src/cli/main-config.ts';
import { define } from '../../src/cli/serve-command.ts';
import { serveSettings } from '../../src/cli/serve-settings.ts';
import type { Shell } from '../../src/cli/shell.ts';
import { parseConfig } from '../../src/config/load.ts';
import { type Block, blocksWithin, parseHcl, type Value } from './hcl.ts';

const folder = new URL('../../examples/nomad/', import.meta.url);
const names = (await readdir(folder)).filter((name) => name.endsWith('.hcl'));
const read = async (name: string) => parseHcl(await readFile(new URL(name, folder), 'utf8'));
const pluginId = 'org.switchboard.csi';

/** What Nomad puts in place of the variables in the examples. */
const values: Readonly<Record<string, string>> = {
  NOMAD_TASK_DIR: '/local',
  'node.unique.name': 'client-1',
  'var.nomad_data_dir': '/opt/nomad/data',
};

function filledIn(value: Value | undefined): string {
  assert.equal(typeof value, 'string');
  return String(value).replace(/\$\{([^}]+)\}/g, (_all, name: string) => {
    assert.ok(name in values, `\${${name}} is not known`);
    return values[name] ?? '';
  });
}

function only(blocks: readonly Block[]): Block {
  assert.equal(blocks.length, 1);
  return blocks[0] as Block;
}

const serverOptions = new Command();
define(serverOptions, {} as Shell, { code: 0 });

/** The settings of the server that a task starts. Throws for flags and variables that it does not know. */
function settingsOf(task: Block) {
  const config = only(task.blocks.filter(({ type }) => type === 'config'));
  const args = (config.attributes.args as readonly Value[]).map(filledIn);
  const command = new Command().exitOverride().allowExcessArguments(false);
  for (const option of serverOptions.options) command.addOption(option);
  command.parse(args, { from: 'user' });
  const variables = only(task.blocks.filter(({ type }) => type === 'env')).attributes;
  const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, filledIn(value)]));
  const known = serverOptions.options.map(
    ({ long = '' }) => `SWITCHBOARD_${long.slice(2).replaceAll('-', '_').toUpperCase()}`,
  );
  const others = ['CSI_NODE_ID', 'SWITCHBOARD_STATE_DIR'];
  for (const name of Object.keys(env)) assert.ok([...known, ...others].includes(name), `${name} is not known`);
  const endpoint = { CSI_ENDPOINT: 'unix:///csi/csi.sock' };
  const machine = { isRoot: true, home: '/root', hostName: 'x', pid: 1, outIsTerminal: false, hasSystemConfig: false };
  return serveSettings(command.opts(), { ...env, ...endpoint }, machine);
}

const plugins = names.filter((name) => /^(monolith|controller|node)-/.test(name));

test('there is a plugin job of each type for each driver', () => {
  assert.deepEqual(plugins.toSorted(), [
    'controller-docker.nomad.hcl',
    'controller-raw-exec.nomad.hcl',
    'monolith-docker.nomad.hcl',
    'monolith-raw-exec.nomad.hcl',
    'node-docker.nomad.hcl',
    'node-raw-exec.nomad.hcl',
  ]);
});

for (const name of plugins) {
  const [kind = '', driver = ''] = name.replace('.nomad.hcl', '').split(/-(.*)/);

  test(`${name}: flags and variables are known, and say what the type of the plugin needs`, async () => {
    const job = only((await read(name)).blocks.filter(({ type }) => type === 'job'));
    assert.equal(job.attributes.type, kind === 'controller' ? 'service' : 'system');
    assert.equal(only(blocksWithin(job, 'restart')).attributes.mode, 'delay');
    const task = only(blocksWithin(job, 'task'));
    assert.equal(task.attributes.driver, driver.replace('-', '_'));

    const { attributes: plugin } = only(blocksWithin(task, 'csi_plugin'));
    assert.deepEqual([plugin.id, plugin.type], [pluginId, kind]);
    assert.match(String(plugin.health_timeout), /^\d+s$/);
    const base = plugin.stage_publish_base_dir;
    if (kind === 'controller') assert.equal(base, undefined);
    else assert.equal(filledIn(base), `/opt/nomad/data/client/csi/${kind}/${pluginId}`);

    const settings = settingsOf(task);
    assert.equal(settings.csiName, pluginId);
    assert.deepEqual(settings.modes, { controller: kind !== 'node', node: kind !== 'controller' });
    assert.deepEqual(settings.endpoints, ['unix:///csi/csi.sock']);
    assert.equal(settings.nodeName, 'client-1');

    const config = only(task.blocks.filter(({ type }) => type === 'config'));
    const isPrivileged = driver === 'docker' && kind !== 'controller';
    assert.equal(config.attributes.privileged, isPrivileged ? true : undefined);
    const state = isPrivileged ? '/host/var/lib/switchboard' : '/var/lib/switchboard';
    assert.equal(settings.stateDirectory, state, 'what a node remembers outlives its container');
    if (driver === 'raw-exec') {
      const artifact = only(blocksWithin(task, 'artifact'));
      assert.equal(artifact.attributes.destination, config.attributes.command);
    }
  });

  test(`${name}: its templates are the configuration that the server is told to read`, async () => {
    const task = only(blocksWithin(await read(name), 'task'));
    const files = new Map(
      blocksWithin(task, 'template').map(({ attributes }) => [`/${attributes.destination}`, attributes]),
    );
    const { configPath = '' } = settingsOf(task);
    const main = parseMainConfig(String(files.get(configPath)?.data), configPath, values);
    assert.deepEqual(main.loaded.warnings, []);
    assert.ok(main.kind === 'proxy');
    const { configFolder } = main.loaded.value.proxy;
    const connections = [...files].filter(([path]) => path.startsWith(`${configFolder}/`));
    assert.equal(connections.length, files.size - 1);
    assert.ok(connections.length > 0);
    for (const [path, { data, change_mode: changeMode }] of connections) {
      // A restart for every change is what connections are there to avoid.
      assert.equal(changeMode, 'noop');
      assert.deepEqual(parseConfig(String(data), path, schemaNamed, { env: values }).warnings, []);
    }
  });
}

test('volumes and jobs that use them fit together', async () => {
  for (const name of ['volume.hcl', 'registered-volume.hcl']) {
    const volume = await read(name);
    assert.deepEqual([volume.attributes.type, volume.attributes.plugin_id], ['csi', pluginId]);
    assert.equal(only(volume.blocks.filter(({ type }) => type === 'parameters')).attributes.connection, 'fast');
    const modes = blocksWithin(volume, 'capability').map(({ attributes }) => attributes.access_mode);
    const wanted = only(blocksWithin(await read('consumer.nomad.hcl'), 'volume')).attributes;
    assert.equal(wanted.source, volume.attributes.id);
    assert.ok(modes.includes(wanted.access_mode ?? ''));
  }
  for (const name of ['consumer.nomad.hcl', 'per-alloc.nomad.hcl']) {
    const job = await read(name);
    for (const { attributes } of blocksWithin(job, 'task')) assert.notEqual(attributes.driver, 'raw_exec');
    const { labels } = only(blocksWithin(job, 'volume'));
    assert.equal(only(blocksWithin(job, 'volume_mount')).attributes.volume, labels[0]);
  }
});

test('the README names every file', async () => {
  const text = await readFile(new URL('README.md', folder), 'utf8');
  for (const name of names) assert.ok(text.includes(`(${name})`), name);
});
