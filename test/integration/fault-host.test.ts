/** Host programs that hang, are missing, or run for a caller who leaves. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { connect as unixConnection } from 'node:net';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import {
  createSnapshot,
  createVolume,
  deleteSnapshot,
  deleteVolume,
  outcomeOf,
  publish,
  unpublish,
  volumeRequest,
} from './csi-calls.ts';
import { assertAtRest, assertLeavesNothing, makeSite, type Server, type Site, until } from './server-under-test.ts';

const { Controller } = services;
const skip = process.getuid?.() !== 0 && 'NOT TESTED: needs root';

/** A site whose `cp` hangs on connection `slow` until it is told to go on, and a volume there to copy. */
async function slowSite(
  t: TestContext,
  trap = '',
): Promise<{ site: Site; server: Server; copies(): Promise<number>; go(): Promise<void> }> {
  const site = await makeSite(t);
  await site.connect('slow');
  await site.standIn(
    'cp',
    `${trap}
for target in "$@"; do :; done
case $target in
*/data/slow/*)
  echo half > "$target/half"
  echo $$ >> ${site.path('copies')}
  until [ -e ${site.path('go')} ]; do sleep 0.05; done
  rm "$target/half";;
esac
exec /bin/cp "$@"`,
  );
  const server = await site.start({ args: ['--log-level', 'verbose'] });
  await createVolume(server, 'source', { connection: 'slow' });
  await writeFile(site.data('slow/v/source/file'), 'content');
  const copies = async () => (await readFile(site.path('copies'), 'utf8').catch(() => '')).split('\n').length - 1;
  return { site, server, copies, go: () => writeFile(site.path('go'), '') };
}

const clone = { connection: 'slow', fromVolume: 'v:slow/source' };

test('a copy that hangs: others go on, its own caller gives up in time, and his retry joins it', {
  skip,
}, async (t) => {
  const { site, server, copies, go } = await slowSite(t);
  const first = await outcomeOf(createVolume(server, 'copy', clone, { timeoutMs: 1500 }));
  assert.equal(first.code, 'DEADLINE_EXCEEDED', first.message);
  assert.equal(await copies(), 1);

  const source = await createVolume(server, 'source');
  for (let round = 0; round < 5; round++) {
    const copy = await createVolume(server, 'copy', { fromVolume: source });
    const snapshot = await createSnapshot(server, 'snap', source);
    await publish(server, copy, site.path('target'));
    await unpublish(server, copy, site.path('target'));
    await deleteSnapshot(server, snapshot);
    await deleteVolume(server, copy);
  }
  await createVolume(server, 'quick', { connection: 'slow' });

  const other = await outcomeOf(createVolume(server, 'copy', { ...clone, bytes: 2 ** 30 }));
  assert.equal(other.code, 'ABORTED');
  assert.match(other.message, /volume .*copy is held by CreateVolume copy \(\d+ s, in copy of volume source\)/);
  const removal = await outcomeOf(deleteVolume(server, 'v:slow/source'));
  assert.equal(removal.code, 'ABORTED', removal.message);
  assert.deepEqual((await readdir(site.data('slow/v'))).sort(), ['quick', 'source']);

  const retry = createVolume(server, 'copy', clone);
  await server.logged('joined an equal call in flight');
  await go();
  assert.equal(await retry, 'v:slow/copy');
  assert.equal(await copies(), 1);
  assert.deepEqual(await readdir(site.data('slow/v/copy')), ['file']);
  for (const id of ['v:local/source', 'v:slow/copy', 'v:slow/source', 'v:slow/quick']) await deleteVolume(server, id);
  await assertLeavesNothing(site, server);
});

for (const [title, trap] of [
  ['a caller who cancels takes his copy with him', ''],
  ['a copy that ignores SIGTERM is ended all the same', "trap '' TERM"],
] as const) {
  test(title, { skip }, async (t) => {
    const { site, server, copies, go } = await slowSite(t, trap);
    const caller = new AbortController();
    const call = outcomeOf(createVolume(server, 'copy', clone, { signal: caller.signal }));
    await until(async () => (await copies()) === 1);
    assert.equal((await site.processes()).length > 1, true);
    caller.abort();
    assert.equal((await call).code, 'CANCELLED');
    await assertAtRest(site, server);
    assert.deepEqual(await readdir(site.data('slow/v')), ['source']);
    await go();
    assert.equal(await createVolume(server, 'copy', clone), 'v:slow/copy');
    assert.deepEqual(await readdir(site.data('slow/v/copy')), ['file']);
    for (const name of ['copy', 'source']) await deleteVolume(server, `v:slow/${name}`);
    await assertLeavesNothing(site, server);
  });
}

test('of two callers who want the same, one may leave', { skip }, async (t) => {
  const { site, server, copies, go } = await slowSite(t);
  const caller = new AbortController();
  const leaving = outcomeOf(createVolume(server, 'copy', clone, { signal: caller.signal }));
  await until(async () => (await copies()) === 1);
  const staying = createVolume(server, 'copy', clone);
  await server.logged('joined an equal call in flight');
  caller.abort();
  assert.equal((await leaving).code, 'CANCELLED');
  await go();
  assert.equal(await staying, 'v:slow/copy');
  assert.equal(await copies(), 1);
  for (const name of ['copy', 'source']) await deleteVolume(server, `v:slow/${name}`);
  await assertLeavesNothing(site, server);
});

test('a client that disconnects in the middle of a call takes his work with him', { skip }, async (t) => {
  const { site, server, copies, go } = await slowSite(t);
  const session = connect('http://localhost', { createConnection: () => unixConnection(site.socket) });
  session.on('error', () => {});
  const message = Controller.CreateVolume.requestSerialize(volumeRequest('copy', clone));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const stream = session.request({
    ':method': 'POST',
    ':path': Controller.CreateVolume.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.on('error', () => {});
  stream.end(Buffer.concat([prefix, message]));
  await until(async () => (await copies()) === 1);
  session.destroy();
  await assertAtRest(site, server);
  assert.deepEqual(await readdir(site.data('slow/v')), ['source']);
  await go();
  await createVolume(server, 'copy', clone);
  for (const name of ['copy', 'source']) await deleteVolume(server, `v:slow/${name}`);
  await assertLeavesNothing(site, server);
});

test('a `mount` that hangs is ended by its time limit', { skip }, async (t) => {
  const site = await makeSite(t);
  await site.standIn('mount', 'exec sleep 3600');
  const server = await site.start({ env: { MOUNT_DEFAULT_TIMEOUT: '300' } });
  const volume = await createVolume(server, 'one');
  const { code, message } = await outcomeOf(publish(server, volume, site.path('target')));
  assert.equal(code, 'DEADLINE_EXCEEDED');
  assert.match(message, /`mount` did not finish within 0.3 s/);
  assert.ok(!(await readdir(site.root)).includes('target'));
  await unpublish(server, volume, site.path('target'));
  await deleteVolume(server, volume);
  await assertLeavesNothing(site, server);
});

const overlay = await readFile('/proc/filesystems', 'utf8').then((text) => text.includes('overlay'));

test('host programs that are missing are named, and the rest works', {
  skip: skip || (!overlay && 'NOT TESTED: needs overlayfs'),
}, async (t) => {
  const site = await makeSite(t);
  const [upper, work] = [site.path('upper'), site.path('work')];
  for (const folder of [upper, work]) await mkdir(folder);
  const missing = ['cp', 'mount', 'umount', 'sync'];
  // Such a device is how an overlay says that a file is not there.
  for (const program of missing) await promisify(execFile)('mknod', [`${upper}/${program}`, 'c', '0', '0']);
  const options = `lowerdir=/usr/bin,upperdir=${upper},workdir=${work}`;
  const script = `mount -t overlay -o ${options} overlay /usr/bin && exec "$@"`;
  const server = await site.start({ under: ['unshare', '--mount', 'sh', '-c', script, 'sh'] });
  const volume = await createVolume(server, 'one');
  const fails = async (work: Promise<unknown>, program: string) => {
    const { code, message } = await outcomeOf(work);
    assert.equal(code, 'FAILED_PRECONDITION', message);
    assert.match(message, new RegExp(`host program \`${program}\` was not found`));
  };
  await fails(createSnapshot(server, 'snap', volume), 'cp');
  await fails(createVolume(server, 'copy', { fromVolume: volume }), 'cp');
  await fails(publish(server, volume, site.path('target')), 'mount');
  assert.deepEqual(await mountsBelow(site.root), []);
  assert.ok(!(await readdir(site.root)).includes('target'));
  await unpublish(server, volume, site.path('target'));
  await assertAtRest(site, server);
  await deleteVolume(server, volume);
  await assertLeavesNothing(site, server);
});
