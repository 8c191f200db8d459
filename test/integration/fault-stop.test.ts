/** Ends and beginnings: signals during calls, and what is at the socket's path. */
import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { services } from '../../src/generated/services.js';
import { createVolume, deleteSnapshot, deleteVolume, outcomeOf } from './csi-calls.ts';
import { assertLeavesNothing, localDirectories, makeSite, type Site, until } from './server-under-test.ts';

const { Controller } = services;

/** Lets `cp` wait until {@link go} was called. */
async function slowCopies(site: Site): Promise<void> {
  await site.standIn(
    'cp',
    `touch ${site.path('started')}; until [ -e ${site.path('go')} ]; do sleep 0.05; done; exec /bin/cp "$@"`,
  );
}

const copying = (site: Site) => until(() => isThere(site.path('started')));

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const unfinished = (site: Site) => readdir(site.data('local/.switchboard/tmp'));

test('SIGTERM lets a call finish', async (t) => {
  const site = await makeSite(t);
  await slowCopies(site);
  const server = await site.start();
  await createVolume(server, 'source');
  const call = createVolume(server, 'copy', { fromVolume: 'v:local/source' });
  await copying(site);
  const stopped = server.stop();
  assert.equal((await server.logged('stopping')).callsInFlight, 1);
  await writeFile(site.path('go'), '');
  assert.equal(await call, 'v:local/copy');
  await stopped;
  assert.deepEqual(await site.processes(), []);
  assert.equal(await isThere(site.socket), false);
  assert.deepEqual(await unfinished(site), []);
});

test('SIGTERM ends a call that takes longer than --stop-timeout, with its child; the next server makes it anew', async (t) => {
  const site = await makeSite(t);
  await slowCopies(site);
  const server = await site.start({ args: ['--stop-timeout', '1'] });
  await createVolume(server, 'source');
  const call = outcomeOf(createVolume(server, 'copy', { fromVolume: 'v:local/source' }));
  await copying(site);
  await server.stop();
  const { code, message } = await call;
  assert.match(code, /^(UNAVAILABLE|CANCELLED)$/, message);
  assert.deepEqual(await site.processes(), []);
  assert.equal(await isThere(site.socket), false);
  assert.deepEqual(await unfinished(site), []);
  assert.deepEqual(await readdir(site.data('local/v')), ['source']);

  await writeFile(site.path('go'), '');
  const next = await site.start();
  await createVolume(next, 'copy', { fromVolume: 'v:local/source' });
  for (const name of ['copy', 'source']) await deleteVolume(next, `v:local/${name}`);
  await assertLeavesNothing(site, next);
});

test('SIGTERM ends work that goes on although its caller gave up', async (t) => {
  const site = await makeSite(t);
  await slowCopies(site);
  const server = await site.start();
  await createVolume(server, 'source');
  const call = outcomeOf(createVolume(server, 'copy', { fromVolume: 'v:local/source' }, { timeoutMs: 1100 }));
  await copying(site);
  assert.equal((await call).code, 'DEADLINE_EXCEEDED');
  await server.stop();
  assert.deepEqual(await site.processes(), []);
  assert.equal((await unfinished(site)).length, 1);
  const next = await site.start();
  for (const name of ['copy', 'source']) await deleteVolume(next, `v:local/${name}`);
  await assertLeavesNothing(site, next);
});

test('SIGTERM does not wait for a snapshot that is not ready; the next server goes on with it', async (t) => {
  const site = await makeSite(t);
  await site.connect('local', `${localDirectories(site.data('local'))}  snapshots: { answer_within: 0 }\n`);
  await slowCopies(site);
  const server = await site.start();
  await createVolume(server, 'source');
  const first = await server.call(Controller.CreateSnapshot, { name: 'snap', sourceVolumeId: 'v:local/source' });
  assert.equal(first.snapshot?.readyToUse, false);
  await copying(site);
  await server.stop();
  assert.deepEqual(await site.processes(), []);
  await writeFile(site.path('go'), '');
  const next = await site.start();
  const id = first.snapshot?.snapshotId;
  await until(async () => {
    const { entries } = await next.call(Controller.ListSnapshots, { snapshotId: id });
    assert.equal(entries.length, 1);
    assert.deepEqual(entries[0]?.snapshot?.creationTime, first.snapshot?.creationTime);
    return entries[0]?.snapshot?.readyToUse === true;
  });
  await deleteSnapshot(next, id ?? '');
  await deleteVolume(next, 'v:local/source');
  await assertLeavesNothing(site, next);
});

test('SIGTERM amid many calls: each is whole or was not', async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  const outcomes = Promise.all(Array.from({ length: 200 }, (_, n) => outcomeOf(createVolume(server, `volume-${n}`))));
  await server.logged('CreateVolume');
  await server.stop();
  for (const { code, message } of await outcomes) assert.match(code, /^(OK|UNAVAILABLE|CANCELLED)$/, message);
  assert.equal(await isThere(site.socket), false);
  assert.deepEqual(await unfinished(site), []);

  const next = await site.start();
  const made = (await outcomes).flatMap(({ code }, n) => (code === 'OK' ? [`volume-${n}`] : []));
  const there = await readdir(site.data('local/v'));
  assert.deepEqual(
    made.filter((name) => !there.includes(name)),
    [],
  );
  assert.deepEqual(
    (await readdir(site.data('local/.switchboard/v'))).sort(),
    there.map((name) => `${name}.json`).sort(),
  );
  for (const name of there) await deleteVolume(next, `v:local/${name}`);
  await assertLeavesNothing(site, next);
});

test('a socket that a killed server left is taken over; the socket of one that lives is not', async (t) => {
  const site = await makeSite(t);
  const first = await site.start();
  await first.kill();
  assert.equal(await isThere(site.socket), true);
  const second = await site.start();
  const env = { SWITCHBOARD_STATE_DIR: site.path('another') };
  await assert.rejects(site.start({ env }), /already in use: another process answers on it/);
  await createVolume(second, 'one').then((id) => deleteVolume(second, id));
  await assertLeavesNothing(site, second);
});

test('whatever else is at the path of the socket stays there, and the server does not start', async (t) => {
  const site = await makeSite(t);
  await writeFile(site.path('precious'), 'precious');
  await mkdir(site.path('state'));
  const others: Readonly<Record<string, () => Promise<unknown>>> = {
    'a file': () => writeFile(site.socket, 'precious'),
    'an empty file': () => writeFile(site.socket, ''),
    'a folder': () => mkdir(site.socket),
    'a symbolic link': () => symlink(site.path('precious'), site.socket),
    'a symbolic link to nothing': () => symlink(site.path('nothing'), site.socket),
  };
  for (const [what, put] of Object.entries(others)) {
    await put();
    const before = await readdir(site.root);
    await assert.rejects(site.start(), { message: /^error: .*is a .*, not a socket, and is left alone.*\n$/ }, what);
    assert.deepEqual(await readdir(site.root), before, what);
    assert.equal(await readFile(site.path('precious'), 'utf8'), 'precious');
    await rm(site.socket, { recursive: true });
  }
  assert.deepEqual(await site.processes(), []);
});
