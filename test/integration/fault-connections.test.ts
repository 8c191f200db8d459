/** Connection files that change under running calls. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { services } from '../../src/generated/services.js';
import { createVolume, deleteVolume, mib, outcomeOf } from './csi-calls.ts';
import {
  assertLeavesNothing,
  eventually,
  localDirectories,
  makeSite,
  openFiles,
  type Server,
  type Site,
  until,
} from './server-under-test.ts';

const { Controller } = services;

interface Traffic {
  /** Resolves when this many more rounds of calls are over. */
  rounds(count: number): Promise<void>;
  /** Ends it; every `code: message` that was not OK. */
  end(): Promise<readonly string[]>;
}

/** Several clients that make, look at and remove volumes of a connection, one call after the other. */
function traffic(server: Server, connection: string): Traffic {
  const failures: string[] = [];
  let over = false;
  let rounds = 0;
  const note = async (work: Promise<unknown>) => {
    const { code, message } = await outcomeOf(work);
    if (code !== 'OK') failures.push(`${code}: ${message}`);
  };
  const client = async (_: unknown, index: number) => {
    for (let round = 0; !over; round++) {
      const name = `client${index}-${round}`;
      await note(createVolume(server, name, { connection }));
      await note(server.call(Controller.ListVolumes, {}));
      await note(server.call(Controller.GetCapacity, { parameters: { connection } }));
      await note(deleteVolume(server, `v:${connection}/${name}`));
      rounds++;
    }
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  return {
    rounds: (count) => {
      const enough = rounds + count;
      return until(() => rounds >= enough);
    },
    async end() {
      over = true;
      await clients;
      return failures;
    },
  };
}

/** Mode of the folder of a volume made now: which version of the file is in use. */
async function modeInUse(site: Site, server: Server): Promise<string> {
  await createVolume(server, 'mode', { connection: 'live' });
  const { mode } = await stat(site.data('live/v/mode'));
  await deleteVolume(server, 'v:live/mode');
  return (mode & 0o777).toString(8);
}

/** Volumes whose folder has this mode. */
const version = (site: Site, mode: string) =>
  `${localDirectories(site.data('live'))}  dirPermissionsMode: "0${mode}"\n`;

async function busySite(t: TestContext): Promise<Site> {
  const site = await makeSite(t);
  await site.connect('live', version(site, '700'));
  return site;
}

async function removeAll(server: Server): Promise<void> {
  const { entries } = await server.call(Controller.ListVolumes, {});
  for (const { volume } of entries) await deleteVolume(server, volume?.volumeId ?? '');
}

test('a file that is broken, rewritten and renamed over: no call fails', async (t) => {
  const site = await busySite(t);
  const server = await site.start();
  const [live, other] = [traffic(server, 'live'), traffic(server, 'local')];
  await live.rounds(4);
  const broken = ['driver: [', 'driver: nothing\n', 'driver: local-hostpath\n', '\0\0\0', '', 'driver: proxy\n'];
  for (const [index, text] of broken.entries()) {
    await site.connect('live', text);
    await live.rounds(4);
    const mode = `75${index % 2}`;
    await writeFile(site.path('connections/.new'), version(site, mode));
    await rename(site.path('connections/.new'), site.path('connections/live.yaml'));
    await live.rounds(4);
    assert.equal(await modeInUse(site, server), mode);
  }
  const warnings = server.log.filter(({ message }) => /cannot be used/.test(String(message)));
  assert.ok(warnings.length >= broken.length, `${warnings.length} warnings`);
  assert.deepEqual(await live.end(), []);
  assert.deepEqual(await other.end(), []);
  await assertLeavesNothing(site, server);
});

test('files that are swapped by a symbolic link, as Kubernetes does: no call fails', async (t) => {
  const site = await busySite(t);
  const folder = site.path('connections');
  const texts = { live: version(site, '700'), local: await readFile(`${folder}/local.yaml`, 'utf8') };
  const swap = async (number: number, live: string) => {
    await mkdir(`${folder}/..${number}`);
    await writeFile(`${folder}/..${number}/live.yaml`, live);
    await writeFile(`${folder}/..${number}/local.yaml`, texts.local);
    await symlink(`..${number}`, `${folder}/..data_tmp`);
    await rename(`${folder}/..data_tmp`, `${folder}/..data`);
    await rm(`${folder}/..${number - 1}`, { recursive: true, force: true });
  };
  await swap(1, texts.live);
  for (const name of ['live', 'local']) {
    await rm(`${folder}/${name}.yaml`);
    await symlink(`..data/${name}.yaml`, `${folder}/${name}.yaml`);
  }
  const server = await site.start();
  const [live, other] = [traffic(server, 'live'), traffic(server, 'local')];
  for (let number = 2; number < 20; number++) {
    const mode = `70${number % 8}`;
    await swap(number, version(site, mode));
    assert.equal(await modeInUse(site, server), mode);
    await live.rounds(2);
  }
  assert.deepEqual(await live.end(), []);
  assert.deepEqual(await other.end(), []);
  await assertLeavesNothing(site, server);
});

test('a file that is removed and put back: calls say so, and nothing is lost', async (t) => {
  const site = await busySite(t);
  const server = await site.start();
  await createVolume(server, 'kept', { connection: 'live' });
  const [live, other] = [traffic(server, 'live'), traffic(server, 'local')];
  for (let round = 0; round < 10; round++) {
    await live.rounds(2);
    await rename(site.path('connections/live.yaml'), site.path('connections/.hidden'));
    const get = await outcomeOf(server.call(Controller.ControllerGetVolume, { volumeId: 'v:live/kept' }));
    assert.equal(get.code, 'FAILED_PRECONDITION', get.message);
    assert.equal((await outcomeOf(deleteVolume(server, 'v:live/kept'))).code, 'FAILED_PRECONDITION');
    await live.rounds(2);
    await rename(site.path('connections/.hidden'), site.path('connections/live.yaml'));
    await server.call(Controller.ControllerGetVolume, { volumeId: 'v:live/kept' });
  }
  assert.deepEqual(await other.end(), []);
  const failures = await live.end();
  assert.ok(failures.length > 0);
  const expected =
    /^(INVALID_ARGUMENT: there is no connection "live"|FAILED_PRECONDITION: connection "live": there is no file )/;
  for (const failure of failures) assert.match(failure, expected);
  assert.ok((await readdir(site.data('live/v'))).includes('kept'));
  await removeAll(server);
  await assertLeavesNothing(site, server);
});

test('a hundred connections that come and go leave no files open', async (t) => {
  const site = await makeSite(t);
  const server = await site.start();
  await createVolume(server, 'first').then((id) => deleteVolume(server, id));
  const filesAtStart = await openFiles(server);
  for (let round = 0; round < 100; round++) {
    const name = `connection-${round}`;
    await site.connect(name, localDirectories(site.data('shared')));
    await createVolume(server, `volume-${round}`, { connection: name });
    await rm(site.path(`connections/${name}.yaml`));
    assert.equal((await outcomeOf(deleteVolume(server, `v:${name}/volume-${round}`))).code, 'FAILED_PRECONDITION');
  }
  await site.connect('shared');
  await removeAll(server);
  await eventually(async () => assert.ok((await openFiles(server)) <= filesAtStart));
  await assertLeavesNothing(site, server);
});

test('connection files that are no files hurt only their own connection', async (t) => {
  const site = await makeSite(t);
  const path = (name: string) => site.path(`connections/${name}.yaml`);
  await promisify(execFile)('mkfifo', [path('pipe')]);
  await mkdir(path('folder'));
  await symlink('/dev/zero', path('endless'));
  await symlink('/dev/tty', path('terminal'));
  await symlink('loop.yaml', path('loop'));
  await symlink('/proc/self/mem', path('memory'));
  await writeFile(path('huge'), Buffer.alloc(64 * mib, '#'));
  await writeFile(path('billion'), `driver: local-hostpath\n${laughs()}`);
  await writeFile(path('deep'), `driver: local-hostpath\nx: ${'['.repeat(50_000)}`);
  const server = await site.start();
  const live = traffic(server, 'local');
  for (const connection of ['pipe', 'folder', 'endless', 'terminal', 'loop', 'memory', 'huge', 'billion', 'deep']) {
    const calls = Array.from({ length: 8 }, () => outcomeOf(createVolume(server, 'one', { connection })));
    for (const { code, message } of await Promise.all(calls)) {
      assert.match(code, /^(FAILED_PRECONDITION|PERMISSION_DENIED)$/, `${connection}: ${code}: ${message}`);
      assert.ok(message.includes(connection) && message.length < 1000, message);
    }
    assert.equal(
      (await outcomeOf(deleteVolume(server, `v:${connection}/one`))).code,
      'FAILED_PRECONDITION',
      connection,
    );
  }
  await live.rounds(4);
  // A list that is not whole is none.
  for (const failure of await live.end()) assert.match(failure, /^UNAVAILABLE: connection "billion": /);
  await assertLeavesNothing(site, server);
});

/** A document that is small as it is written, and endless with its aliases resolved. */
function laughs(): string {
  const line = (level: number) =>
    `a${level}: &a${level} [${Array(9)
      .fill(`*a${level - 1}`)
      .join(', ')}]\n`;
  return `a0: &a0 ha\n${Array.from({ length: 12 }, (_, level) => line(level + 1)).join('')}`;
}
