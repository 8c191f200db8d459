import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { parseMainConfig } from '../../src/cli/main-config.ts';
import type { ConnectionOptions } from '../../src/config/common.ts';
import { parseConfig } from '../../src/config/load.ts';
import { driverType } from '../../src/drivers/index.ts';
import type { ProxyConfig } from '../../src/proxy/config.ts';
import { nodeAddress } from '../../src/proxy/node-address.ts';
import { encodeNodeId } from '../../src/proxy/node-identity.ts';
import { explainNodeTopology } from '../../src/proxy/node-topology.ts';
import { placesFrom } from '../../src/proxy/placement.ts';

const file = new URL('../../examples/switchboard.yaml', import.meta.url);

function parse(text: string): ProxyConfig {
  const main = parseMainConfig(text, 'switchboard.yaml', {});
  assert.ok(main.kind === 'proxy');
  assert.deepEqual(main.loaded.warnings, []);
  return main.loaded.value;
}

test('the example of the main file is understood to the last key, and says what its comments say', async () => {
  const text = await readFile(file, 'utf8');
  const config = parse(text);
  const { segments } = await explainNodeTopology(config.proxy.nodeTopology, {
    nodeName: 'zone-a-12',
    hostName: 'node-12.rack-7.example.org',
    env: { ZONE: 'zone-b' },
    readFile: () => Promise.reject(new Error('no such file')),
  });
  assert.deepEqual(segments, {
    'org.democratic-csi.topology/zone': 'zone-b',
    'org.democratic-csi.topology/rack': 'rack-7',
  });
  const parts = { nodeName: true, hostname: false, iqn: true, nqn: true };
  const identity = { nodeName: 'n1', iqn: 'iqn.1993-08.org.debian:01:5a', nqn: 'nqn.2014-08.org.nvmexpress:uuid:6f' };
  assert.equal(encodeNodeId({ ...config.proxy.nodeId, parts }, identity), 'n=n1/i1=5a/v1=6f');
});

test('so is what it has in comments', async () => {
  const text = await readFile(file, 'utf8');
  const [head = '', tail = ''] = text.split('# What follows also holds');
  const uncommented = tail.replace(/^# (?=(csi|service|node):| {2})/gm, '');
  const config = parse(
    `${head}${uncommented.slice(uncommented.indexOf('\n'))}`.replace('# defaultConnection', 'defaultConnection'),
  );
  assert.equal(config.proxy.defaultConnection, 'local');
  assert.deepEqual(config.csi?.access_modes, ['SINGLE_NODE_WRITER', 'MULTI_NODE_MULTI_WRITER']);
  assert.deepEqual(config.node?.mount?.mount_flags, ['noatime']);
  assert.deepEqual(config.node?.format?.xfs?.customOptions, ['-K']);
  assert.ok(config.service?.controller?.capabilities?.rpc?.includes('PUBLISH_UNPUBLISH_VOLUME'));
});

test('the keys of every connection are understood, and its places have legal labels', async () => {
  const path = new URL('../../examples/connections/every-connection.yaml', import.meta.url);
  const text = (await readFile(path, 'utf8')).replace(/^( *)# (?=(instance_id|nodeIdTemplate):)/gm, '$1');
  const schemaFor = (name: string) => driverType(name)?.schema;
  const loaded = parseConfig<unknown>(text, 'every-connection.yaml', schemaFor, { env: {} });
  assert.deepEqual(loaded.warnings, []);
  const options = (loaded.value as { proxy: { perDriver: ConnectionOptions } }).proxy.perDriver;
  assert.equal(
    nodeAddress(parse(await readFile(file, 'utf8')).proxy.nodeId, options, 'n=node-1'),
    'node-1.storage.example.org',
  );
  const [first, second] = placesFrom('p.org', options.topology ?? []);
  assert.deepEqual(first?.segments, { 'p.org/zone': 'zone-a', 'example.org/disk': 'fast' });
  assert.deepEqual(second?.requirements, { 'p.org/zone': 'zone-b', 'p.org/rack': 'rack-7' });
});
