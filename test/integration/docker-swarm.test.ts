/** SwarmKit's calls, in the order in which a real engine makes them, against the real server and real mounts. */
import assert from 'node:assert/strict';
import { access, readdir, readFile, writeFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import { enterMountNamespace } from './node-support.ts';
import { assertAtRest, eventually, makeSite, type Server, type Site } from './server-under-test.ts';

enterMountNamespace(import.meta.url);

const { CreateVolume, DeleteVolume } = services.Controller;
const { NodeStageVolume, NodePublishVolume, NodeUnpublishVolume, NodeGetCapabilities } = services.Node;

const capability = { mount: {}, accessMode: { mode: 1 } };

/** As its manager sends it: a range and a requirement are always there, empty or not. */
const creation = {
  name: 'cv',
  volumeCapabilities: [capability],
  parameters: { connection: 'local' },
  capacityRange: { requiredBytes: 0, limitBytes: 0 },
  accessibilityRequirements: { requisite: [], preferred: [] },
};

interface Agent {
  readonly site: Site;
  readonly server: Server;
  readonly volumeId: string;
  readonly target: string;
  readonly staging: string;
  publish(more?: object, timeoutMs?: number): Promise<unknown>;
  unpublish(timeoutMs?: number): Promise<unknown>;
}

async function agent(t: TestContext, parameters: Record<string, string> = {}): Promise<Agent> {
  const site = await makeSite(t);
  const server = await site.start({ args: ['--swarm', 'on', '--docker-allow-unseen-mounts'] });
  const made = await server.call(CreateVolume, {
    ...creation,
    parameters: { ...creation.parameters, ...parameters },
  });
  const { volumeId = '', volumeContext = {} } = made.volume ?? {};
  const target = site.path('published/x1');
  const request = { volumeId, volumeContext, targetPath: target, volumeCapability: capability };
  return {
    site,
    server,
    volumeId,
    target,
    staging: site.path('staged/x1'),
    publish: (more = {}, timeoutMs = 15_000) => server.call(NodePublishVolume, { ...request, ...more }, { timeoutMs }),
    unpublish: (timeoutMs = 15_000) =>
      server.call(NodeUnpublishVolume, { volumeId, targetPath: target }, { timeoutMs }),
  };
}

async function assertGone({ site }: Agent): Promise<void> {
  assert.deepEqual(await mountsBelow(site.root), []);
  for (const folder of ['staged', 'published']) assert.deepEqual(await readdir(site.path(folder)).catch(() => []), []);
}

test('published without being staged, repeated, unpublished without being unstaged: nothing is left', async (t) => {
  const one = await agent(t);
  const { capabilities } = await one.server.call(NodeGetCapabilities, {});
  assert.ok(
    capabilities.every((found) => found.rpc?.type !== 1),
    'staging is offered',
  );
  await one.publish();
  await writeFile(`${one.target}/x`, 'precious');
  await one.publish();
  assert.equal(await readFile(one.site.path('data/local/v/cv/x'), 'utf8'), 'precious');
  await one.unpublish();
  await one.unpublish();
  await assertGone(one);
  await one.server.call(DeleteVolume, { volumeId: one.volumeId });
  await assertAtRest(one.site, one.server);
});

test('an agent that learned of staging before: staged, published, unpublished only', async (t) => {
  const one = await agent(t);
  const { volumeId, staging } = one;
  await one.server.call(NodeStageVolume, {
    volumeId,
    stagingTargetPath: staging,
    volumeCapability: capability,
    volumeContext: { node_attach_driver: 'hostpath', path: one.site.path('data/local/v/cv') },
  });
  await one.publish({ stagingTargetPath: staging });
  await one.unpublish();
  await assertGone(one);
});

test('mount flags that its command line cannot say come with the volume', async (t) => {
  const one = await agent(t, { mountFlags: 'noexec' });
  await one.publish();
  await writeFile(`${one.target}/run`, '#!/bin/sh\n', { mode: 0o755 });
  await assert.rejects(access(`${one.target}/run`, 1), /EACCES/);
  await one.unpublish();
  await assertGone(one);
});

test('attempts that end before the work does: it goes on, and a retry finds it', async (t) => {
  const one = await agent(t);
  const go = one.site.path('go');
  await one.site.standIn('mount', `while [ ! -e ${go} ]; do sleep 0.02; done; exec /bin/mount "$@"`);
  for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(one.publish({}, 200), /no answer within/);
  await writeFile(go, '');
  await eventually(() => one.publish().then(() => {}));
  await writeFile(`${one.target}/x`, 'precious');
  assert.equal(await readFile(one.site.path('data/local/v/cv/x'), 'utf8'), 'precious');
  await one.unpublish();
  await assertGone(one);
  await assertAtRest(one.site, one.server);
});

test('an attempt that ended, and then the volume is not wanted any more', async (t) => {
  const one = await agent(t);
  const go = one.site.path('go');
  await one.site.standIn('mount', `while [ ! -e ${go} ]; do sleep 0.02; done; exec /bin/mount "$@"`);
  await assert.rejects(one.publish({}, 200), /no answer within/);
  const retry = eventually(() => one.unpublish(500).then(() => {}));
  await writeFile(go, '');
  await retry;
  await eventually(() => assertGone(one));
  await assertAtRest(one.site, one.server);
});

test('kill -9 while it is published: the next process takes all of it away', async (t) => {
  const one = await agent(t);
  await one.publish();
  await one.server.kill();
  const server = await one.site.start({ args: ['--swarm', 'on'] });
  await server.call(NodeUnpublishVolume, { volumeId: one.volumeId, targetPath: one.target });
  await assertGone(one);
  await server.call(DeleteVolume, { volumeId: one.volumeId });
  await assertAtRest(one.site, server);
});

test('forgotten and created anew, larger: the same volume, grown', async (t) => {
  const one = await agent(t);
  await one.publish();
  await writeFile(`${one.target}/x`, 'precious');
  await one.unpublish();
  const larger = { ...creation, capacityRange: { requiredBytes: 3 * 2 ** 30, limitBytes: 3 * 2 ** 30 } };
  const { volume } = await one.server.call(CreateVolume, larger);
  assert.deepEqual([volume?.volumeId, volume?.capacityBytes], [one.volumeId, 3 * 2 ** 30]);
  const { volume: same } = await one.server.call(CreateVolume, creation);
  assert.equal(same?.capacityBytes, 3 * 2 ** 30);
  const smaller = { ...creation, capacityRange: { requiredBytes: 2 ** 20, limitBytes: 2 ** 20 } };
  assert.equal((await one.server.call(CreateVolume, smaller)).volume?.capacityBytes, 3 * 2 ** 30);
  await one.publish();
  assert.equal(await readFile(`${one.target}/x`, 'utf8'), 'precious');
  await one.unpublish();
});
