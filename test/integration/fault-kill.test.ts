/** kill -9 at every step of what changes storage: the same call completes it, or delete removes it, and nothing leaks. */
import assert from 'node:assert/strict';
import { cp, link, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type * as csi from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import {
  createSnapshot,
  createVolume,
  deleteSnapshot,
  deleteVolume,
  mib,
  outcomeOf,
  volumeRequest,
  writer,
} from './csi-calls.ts';
import { assertAtRest, assertLeavesNothing, makeSite, type Server, type Site } from './server-under-test.ts';
import { cannotTrace, distinctSteps, oneFileThread, watchFiles } from './watch-files.ts';

const { Controller, Node } = services;

/** What is killed is called again on this connection; on the other one, a copy of what it left, all is removed. */
const repeated = 'repeated';
const removed = 'removed';

const volume = (name: string) => `v:${repeated}/${name}`;
const first = `s:${repeated}/snapshot_driver=filecopy&snapshot_id=source-first`;

type Operation = (server: Server) => Promise<unknown>;

const make =
  (from: Pick<Parameters<typeof volumeRequest>[1] & object, 'fromSnapshot' | 'fromVolume'>): Operation =>
  (server) =>
    server.call(Controller.CreateVolume, volumeRequest('made', { connection: repeated, ...from }));

/** On the volume `source` and its snapshot `first`. */
const operations: Readonly<Record<string, Operation>> = {
  'CreateVolume, empty': make({}),
  'CreateVolume from a snapshot': make({ fromSnapshot: first }),
  'CreateVolume from a volume': make({ fromVolume: volume('source') }),
  CreateSnapshot: (server) => createSnapshot(server, 'second', volume('source')),
  DeleteVolume: (server) => deleteVolume(server, volume('source')),
  DeleteSnapshot: (server) => deleteSnapshot(server, first),
  ControllerExpandVolume: (server) =>
    server.call(Controller.ControllerExpandVolume, {
      volumeId: volume('source'),
      capacityRange: { requiredBytes: 2 * mib },
    }),
};

/** Programs that copying runs: the server can be killed while they do. */
const copiers: Readonly<Record<string, readonly string[]>> = {
  'CreateVolume from a snapshot': ['cp', 'sync'],
  'CreateVolume from a volume': ['cp', 'sync'],
  CreateSnapshot: ['cp', 'sync'],
};

/** A copy that has begun goes on after the server is killed. */
const killsItsParent = (flag: string, program: string) =>
  `for target in "$@"; do :; done
if rm ${flag} 2>/dev/null; then echo half > "$target/half"; kill -KILL $PPID; rm "$target/half"; fi
exec /bin/${program} "$@"`;

async function prepare(t: TestContext): Promise<Site> {
  const site = await makeSite(t);
  await rm(site.path('connections/local.yaml'));
  await site.connect(repeated);
  await site.connect(removed);
  for (const program of ['cp', 'sync']) {
    await site.standIn(program, killsItsParent(site.path(`kill-in-${program}`), program));
  }
  const server = await site.start();
  await createVolume(server, 'source', { connection: repeated });
  const data = site.data(`${repeated}/v/source`);
  await mkdir(join(data, 'folder'));
  await writeFile(join(data, 'file'), 'content', { mode: 0o751 });
  await link(join(data, 'file'), join(data, 'folder/other name'));
  await symlink('/nowhere', join(data, 'link'));
  await createSnapshot(server, 'first', volume('source'));
  await server.stop();
  await cp(site.data(repeated), site.path('template'), { recursive: true, verbatimSymlinks: true });
  return site;
}

/** Both connections as they were prepared. */
async function reset(site: Site): Promise<void> {
  for (const name of [repeated, removed]) await rm(site.data(name), { recursive: true, force: true });
  await cp(site.path('template'), site.data(repeated), { recursive: true, verbatimSymlinks: true });
}

type Tree = readonly string[];

/** Every path with its kind, mode, links and content. */
async function treeOf(folder: string): Promise<Tree> {
  const names = (await readdir(folder, { recursive: true })).sort();
  const lines = names.map(async (name) => {
    const { mode, nlink } = await lstat(join(folder, name));
    const content = (mode & 0o170000) === 0o100000 ? await readFile(join(folder, name), 'utf8') : '';
    return [name, mode.toString(8), content === '' ? '' : nlink, content].join(' ');
  });
  return Promise.all(lines);
}

/** What a client can see of the connection, besides times. */
async function stateOf(site: Site, server: Server) {
  const volumes = await server.call(Controller.ListVolumes, {});
  const snapshots = await server.call(Controller.ListSnapshots, {});
  const shown = ({ creationTime: _, ...rest }: csi.Snapshot) => ({ ...rest });
  const isHere = (id = '') => id.includes(`:${repeated}/`);
  return {
    tree: [...(await treeOf(site.data(`${repeated}/v`))), ...(await treeOf(site.data(`${repeated}/s`)))],
    volumes: volumes.entries.filter((one) => isHere(one.volume?.volumeId)).map((one) => structuredClone({ ...one })),
    snapshots: snapshots.entries.flatMap((one) =>
      one.snapshot && isHere(one.snapshot.snapshotId) ? [shown(one.snapshot)] : [],
    ),
  };
}

async function removeEverything(server: Server, connection: string): Promise<void> {
  for (const name of ['made', 'source']) await deleteVolume(server, `v:${connection}/${name}`);
  for (const name of ['source-first', 'source-second']) await deleteSnapshot(server, `s:${connection}/${name}`);
}

/** Every volume and snapshot that is to be seen is as it was before, or as it is to become. */
async function assertNothingHalf(site: Site, before: Tree, after: Tree): Promise<void> {
  for (const area of ['v', 's']) {
    const folder = site.data(`${repeated}/${area}`);
    const now = await treeOf(folder);
    for (const name of await readdir(folder)) {
      const of = (tree: Tree) => tree.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}/`));
      assert.ok(
        [of(before), of(after)].some((tree) => `${tree}` === `${of(now)}`),
        `${area}/${name} is half: ${of(now)}`,
      );
    }
  }
}

for (const [title, operation] of Object.entries(operations)) {
  test(`${title} is killed at every step`, { skip: cannotTrace }, async (t) => {
    const site = await prepare(t);
    const trace = site.path('trace');
    let server = await site.start({ env: oneFileThread });

    await reset(site);
    const before = await stateOf(site, server);
    const watch = await watchFiles(server, { file: trace });
    const answer = await operation(server);
    const steps = await watch.end();
    const after = await stateOf(site, server);
    assert.notDeepEqual(after, before);

    const faults = [
      ...distinctSteps(steps).map((step) => ({
        title: step.line.replaceAll(site.root, ''),
        arm: () => watchFiles(server, { file: trace, killAt: step }),
      })),
      ...(copiers[title] ?? []).map((program) => ({
        title: program,
        arm: () => writeFile(site.path(`kill-in-${program}`), ''),
      })),
    ];
    for (const fault of faults) {
      await reset(site);
      await fault.arm();
      const { code, message } = await outcomeOf(operation(server));
      assert.equal(code, 'UNAVAILABLE', `${fault.title}: ${message}`);
      assert.equal((await server.ended).signal, 'SIGKILL');
      await cp(site.data(repeated), site.data(removed), { recursive: true, verbatimSymlinks: true });

      server = await site.start({ env: oneFileThread });
      await t.test(fault.title, async () => {
        await assertNothingHalf(site, before.tree, after.tree);
        const again = await operation(server);
        if (title !== 'CreateSnapshot') assert.deepEqual(again, answer);
        assert.deepEqual(await stateOf(site, server), after);
        for (const connection of [repeated, removed]) await removeEverything(server, connection);
        await assertAtRest(site, server);
      });
    }
    t.diagnostic(`${faults.length} of ${steps.length} steps`);
    assert.ok(faults.length >= 3);
    await assertLeavesNothing(site, server);
  });
}

/** Kills the server before it runs, or when it has ended. */
const killsAround = (site: Site, program: string) =>
  `if rm ${site.path('kill-before')} 2>/dev/null; then kill -KILL $PPID; exit 1; fi
/bin/${program} "$@"
code=$?
if rm ${site.path('kill-after')} 2>/dev/null; then kill -KILL $PPID; fi
exit $code`;

test('a node is killed while it mounts and unmounts', {
  skip: process.getuid?.() !== 0 && 'NOT TESTED: needs root',
}, async (t) => {
  const site = await makeSite(t);
  for (const program of ['mount', 'umount']) await site.standIn(program, killsAround(site, program));
  let server = await site.start();
  const id = await createVolume(server, 'one');
  const { volume: made } = await server.call(Controller.ControllerGetVolume, { volumeId: id });
  const [targetPath, stagingTargetPath] = [site.path('target'), site.path('staging')];
  const on = { volumeId: id, volumeCapability: writer, volumeContext: made?.volumeContext ?? {} };
  const stage: Operation = (at) => at.call(Node.NodeStageVolume, { ...on, stagingTargetPath });
  const unstage: Operation = (at) => at.call(Node.NodeUnstageVolume, { volumeId: id, stagingTargetPath });
  const steps: readonly Operation[] = [
    stage,
    (at) => at.call(Node.NodePublishVolume, { ...on, stagingTargetPath, targetPath }),
    (at) => at.call(Node.NodeUnpublishVolume, { volumeId: id, targetPath }),
    unstage,
  ];
  for (const when of ['kill-before', 'kill-after']) {
    for (const [index, step] of steps.entries()) {
      await writeFile(site.path(when), '');
      assert.equal((await outcomeOf(step(server))).code, 'UNAVAILABLE', `${when} ${index}`);
      await server.ended;
      server = await site.start();
      await step(server);
      const expected = [[stagingTargetPath], [targetPath, stagingTargetPath], [stagingTargetPath], []];
      assert.deepEqual(await mountsBelow(site.root), expected[index], `${when} ${index}`);
    }
    // What was killed half-way is taken down by the opposite call, too.
    await writeFile(site.path(when), '');
    await outcomeOf(stage(server));
    await server.ended;
    server = await site.start();
    await unstage(server);
    assert.deepEqual(await mountsBelow(site.root), []);
  }
  assert.deepEqual(
    (await readdir(site.root)).filter((name) => ['target', 'staging'].includes(name)),
    [],
  );
  await deleteVolume(server, id);
  await assertLeavesNothing(site, server);
});
