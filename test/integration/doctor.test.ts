/** `switchboard doctor` as a process, on this machine, with things that are really there and really hang. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, rm, rmdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { httpGet } from '../../src/cli/doctor/http-get.ts';

const main = join(import.meta.dirname, '../../src/main.ts');
const exec = promisify(execFile);
const asRoot = { skip: process.getuid?.() !== 0 && 'needs root' };

/** What the command promises for everything together. */
const promisedMs = 15_000;

interface Found {
  readonly subject: string;
  readonly name: string;
  readonly state: string;
  readonly detail: string;
}

async function folder(t: TestContext, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'doctor-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  await mkdir(join(path, 'connections'));
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(path, name), text.replaceAll('HERE', path), { mode: 0o755 });
  }
  return path;
}

const mainFile = 'driver: proxy\nproxy:\n  configFolder: HERE/connections\n  nodeTopology: { type: node }\n';
const local = (base: string, more = '') =>
  `driver: local-hostpath\nlocal-hostpath:\n  shareBasePath: ${base}\n  controllerBasePath: ${base}\n${more}`;

/** Ended when it takes longer than it promises. */
async function doctor(root: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const options = {
    timeout: promisedMs,
    killSignal: 'SIGKILL',
    env: { PATH: process.env.PATH, SWITCHBOARD_STATE_DIR: join(root, 'state'), CSI_NODE_ID: 'node-1', ...env },
  } as const;
  const argv = [main, 'doctor', '--config', join(root, 'main.yaml'), '--endpoint', `unix://${root}/s.sock`, ...args];
  const failed = (error: { code: number | null; stdout: string; stderr: string }) => error;
  const { stdout, stderr, code } = await exec(process.execPath, argv, options).then(
    (output) => ({ ...output, code: 0 as number | null }),
    failed,
  );
  assert.equal(stderr, '');
  return { code, out: stdout };
}

async function findings(root: string, env: Readonly<Record<string, string>> = {}) {
  const { code, out } = await doctor(root, ['--json'], env);
  const report = JSON.parse(out) as { ok: boolean; counts: Record<string, number>; findings: readonly Found[] };
  const at = (subject: string, name: string) =>
    report.findings.find((one) => one.subject === subject && one.name === name);
  return { code, report, at };
}

test('a host in order: exit code 0, as a table and as JSON', asRoot, async (t) => {
  const root = await folder(t, { 'main.yaml': mainFile, 'connections/fast.yaml': local('HERE/data') });
  const { code, report, at } = await findings(root);
  assert.equal(code, 0, JSON.stringify(report.findings.filter((one) => one.state === 'error')));
  assert.equal(report.ok, true);
  assert.match(at('connections', 'fast')?.detail ?? '', /^local-hostpath: reachable, \d+ ms, .* free$/);
  assert.match(at('programs', 'mount')?.detail ?? '', /^\d[\d.]+, \/\S+\/mount \(direct\)/);
  assert.equal(at('identity', 'node id')?.detail, 'n=node-1 (8 of 256 bytes)');
  assert.equal(at('sockets', `unix://${root}/s.sock`)?.state, 'note');
  const { code: same, out } = await doctor(root);
  assert.equal(same, 0);
  assert.match(out, /^Connections\n {2}ok +fast +local-hostpath: reachable/m);
  assert.match(out, /\d+ ok, \d+ notes, \d+ warnings?, 0 errors\n$/);
});

test('a broken file, a file in the place of a socket: exit code 1; the other connection is still asked', async (t) => {
  const root = await folder(t, {
    'main.yaml': mainFile,
    's.sock': '',
    'connections/fast.yaml': local('HERE/data'),
    'connections/odd.yaml': 'driver: local-hostpath\nlocal-hostpath: {}\n',
  });
  const { code, at } = await findings(root);
  assert.equal(code, 1);
  assert.equal(at('configuration', 'connection odd')?.state, 'error');
  assert.equal(at('connections', 'fast')?.state, 'ok');
  assert.equal(at('sockets', `unix://${root}/s.sock`)?.state, 'error');
  const missing = await findings(await folder(t));
  assert.deepEqual([missing.code, missing.at('configuration', 'main file')?.state], [1, 'error']);
});

test('no secret is shown, wherever in a configuration it stands', async (t) => {
  const secret = 'correct-horse-battery';
  const root = await folder(t, {
    'main.yaml': `${mainFile}  token: ${secret}-1\nhost: { pasword: ${secret}-2 }\n`,
    'connections/fast.yaml': local(
      'HERE/data',
      `  pasword: ${secret}-3\n  snapshots: { restic: { env: { RESTIC_PASSWORD: ${secret}-4 } }, kopia: { config_token: ${secret}-5 } }\n`,
    ),
    'connections/odd.yaml': local(
      'HERE/data',
      `  quota: [${secret.length}]\nhttpConnection: { password: ${secret}-6 }\n`,
    ),
    'connections/direct.yaml': `driver: freenas-nfs\nhttpConnection:\n  apiKey: ${secret}-7\n`,
    'connections/torn.yaml': `driver: local-hostpath\n  password: "${secret}-8\n`,
  });
  for (const args of [[], ['--json']]) {
    const { out } = await doctor(root, args, { SOME_PASSWORD: `${secret}-9` });
    assert.match(out, /connections?/i);
    assert.ok(
      !out.includes(secret),
      out
        .split('\n')
        .filter((line) => line.includes(secret))
        .join('\n'),
    );
  }
});

test('a dead socket is told from one whose owner hangs, within the time that is promised', async (t) => {
  const root = await folder(t, { 'main.yaml': mainFile, 'connections/fast.yaml': local('HERE/data') });
  const server = createSocket();
  server.listen(join(root, 's.sock'));
  await once(server, 'listening');
  t.after(() => server.close());
  const hanging = (await findings(root)).at('sockets', `unix://${root}/s.sock`);
  assert.equal(hanging?.state, 'error', JSON.stringify(hanging));
  const stale = await mkdtemp(join(tmpdir(), 'doctor-'));
  t.after(() => rm(stale, { recursive: true }));
  const path = join(root, 'stale.sock');
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  await once(spawn(process.execPath, ['-e', script], { stdio: 'ignore' }), 'exit');
  const { report } = await findings(root, { SWITCHBOARD_SERVER_SOCKET: path });
  const found = report.findings.find((one) => one.name === `unix://${path}`);
  assert.deepEqual([found?.state, found?.detail.slice(0, 5)], ['warning', 'stale'], JSON.stringify(found));
});

test('every program hangs: it ends all the same', asRoot, async (t) => {
  const root = await folder(t, { 'main.yaml': mainFile, 'connections/fast.yaml': local('HERE/data') });
  await mkdir(join(root, 'bin'));
  for (const program of [
    'mount',
    'umount',
    'blkid',
    'stat',
    'cp',
    'sync',
    'du',
    'od',
    'nvme',
    'zfs',
    'zpool',
    'iscsiadm',
  ]) {
    await writeFile(join(root, 'bin', program), "#!/bin/sh\ntrap '' TERM\nexec /bin/sleep 600\n", { mode: 0o755 });
  }
  const { code, at } = await findings(root, { PATH: `${root}/bin:${process.env.PATH}` });
  assert.equal(code, 0);
  assert.match(at('programs', 'mount')?.detail ?? '', /^version not told in time, /);
});

test(
  'storage that does not answer: said, in time, and nothing of it is touched by the process itself',
  asRoot,
  async (t) => {
    const root = await folder(t, { 'main.yaml': mainFile, 'connections/good.yaml': local('HERE/data') });
    const mountPoint = await mountThatHangs(t);
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await writeFile(join(root, 'connections', `${name}.yaml`), local(join(mountPoint, name)));
    }
    const { code, report, at } = await findings(root);
    assert.equal(code, 1);
    for (const name of ['a', 'f']) {
      assert.equal(at('connections', name)?.state, 'error');
      assert.match(at('connections', name)?.detail ?? '', /out of reach: it does not answer/);
    }
    assert.equal(at('connections', 'good')?.state, 'ok');
    assert.equal(
      at('mounts', mountPoint)?.state,
      'warning',
      JSON.stringify(report.findings.filter((one) => one.subject === 'mounts')),
    );
    const dead = await folder(t, { 'main.yaml': mainFile.replaceAll('HERE', mountPoint) });
    const there = await findings(dead);
    assert.equal(there.code, 1);
    assert.match(there.at('configuration', 'main file')?.detail ?? '', /out of reach/);
  },
);

/** A FUSE mount whose daemon never says a word. Closing the device ends it, and whoever waits for it. */
async function mountThatHangs(t: TestContext): Promise<string> {
  const mountPoint = await mkdtemp(join(tmpdir(), 'doctor-nas-'));
  const device = await open('/dev/fuse', 'r+');
  t.after(async () => {
    await device.close();
    await exec('umount', ['-l', mountPoint]);
    await rmdir(mountPoint);
  });
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0';
  const child = spawn('mount', ['-i', '-t', 'fuse.sshfs', '-o', options, 'nas:/v', mountPoint], {
    stdio: ['ignore', 'inherit', 'inherit', device.fd],
  });
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  return mountPoint;
}

test('the directory of a mounted volume was removed below it', asRoot, async (t) => {
  const root = await folder(t, { 'main.yaml': mainFile, 'connections/fast.yaml': local('HERE/data') });
  const volume = join(root, 'data/v/one');
  await mkdir(volume, { recursive: true });
  const target = await mkdtemp(join(tmpdir(), 'doctor-target-'));
  await exec('mount', ['--bind', volume, target]);
  t.after(async () => {
    await exec('umount', [target]);
    await rmdir(target);
  });
  assert.equal((await findings(root)).at('mounts', target), undefined);
  await rm(volume, { recursive: true });
  const { code, at } = await findings(root);
  assert.equal(code, 1);
  assert.match(at('mounts', target)?.detail ?? '', /^dead: .*data\/v\/one was removed below it$/);
});

test('asking over HTTP on a socket: an answer, another status, silence', async (t) => {
  const root = await folder(t);
  const path = join(root, 'docker.sock');
  const server = createServer((request, response) => {
    if (request.url === '/version') response.end('{"Version":"28.2.0"}');
    else if (request.url === '/none') response.writeHead(404).end();
  });
  server.listen(path);
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  assert.equal(await httpGet(path, '/version'), '{"Version":"28.2.0"}');
  await assert.rejects(httpGet(path, '/none'), /HTTP 404/);
  await assert.rejects(httpGet(path, '/silence'), /no answer within/);
  await assert.rejects(httpGet(join(root, 'nothing'), '/'), /ENOENT/);
});
