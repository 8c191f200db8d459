/** The server as a process: how it starts, listens, and ends. */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { access, mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { type Finished, switchboard } from '../unit/cli-shell.ts';
import { type LogLine, readLog } from './log-lines.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

interface Server {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** The next log line with this message, or one that fits. */
  logged(message: string | RegExp): Promise<LogLine>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<{ code: number | null; signal: string | null; err: string }>;
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'cli-serve-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

function serve(t: TestContext, args: readonly string[], env: Record<string, string> = {}): Server {
  const { PATH = '', NODE_OPTIONS = '' } = process.env;
  const own = mkdtempSync(join(tmpdir(), 'cli-serve-state-'));
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH, NODE_OPTIONS, SWITCHBOARD_STATE_DIR: own, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(async () => {
    child.kill('SIGKILL');
    await rm(own, { recursive: true, force: true });
  });
  let err = '';
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  return {
    child,
    logged: readLog(child.stdout).logged,
    ended: once(child, 'close').then(([code, signal]) => ({ code, signal, err })),
  };
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** A main file whose NodeGetInfo answers when somebody has written to a pipe. */
async function withPipe(path: string): Promise<{ config: string; pipe: string; socket: string }> {
  const pipe = join(path, 'pipe');
  const config = join(path, 'main.yaml');
  await promisify(execFile)('mkfifo', [pipe]);
  await mkdir(join(path, 'connections'));
  await writeFile(
    config,
    `driver: proxy
proxy:
  configFolder: ${path}/connections
  nodeTopology:
    type: custom
    customRules:
    - { keySuffix: zone, source: file, file: ${pipe} }
`,
  );
  return { config, pipe, socket: join(path, 'csi.sock') };
}

describe('without a configuration', () => {
  test('a folder of its own, a socket for its owner, a first connection that works', async (t) => {
    const state = join(await folder(t), 'state');
    const server = serve(t, [], { SWITCHBOARD_STATE_DIR: state });
    const ready = await server.logged('ready');
    assert.deepEqual(ready.addresses, [`unix://${state}/csi.sock`]);
    assert.equal(typeof ready.startupMs, 'number');
    assert.equal((await stat(join(state, 'csi.sock'))).mode & 0o777, 0o600);
    assert.equal((await stat(state)).mode & 0o777, 0o700);

    const env = { SWITCHBOARD_STATE_DIR: state };
    const made = await switchboard(['ctl', 'create', 'data', '--connection', 'local', '--size', '1M'], env);
    assert.equal(made.code, 0, made.err);
    assert.ok(await exists(join(state, 'volumes/v/data')));

    server.child.kill('SIGTERM');
    const { code, signal, err } = await server.ended;
    assert.deepEqual([code, signal], [0, null]);
    assert.match(err, /switchboard ctl create data --connection local/);
    assert.equal(await exists(join(state, 'csi.sock')), false);
  });

  test('what is there is kept: a changed connection, or others in its place', async (t) => {
    const state = await folder(t);
    const connections = join(state, 'connections');
    await mkdir(connections);
    const own = 'driver: local-hostpath\nlocal-hostpath: { shareBasePath: /srv, controllerBasePath: /srv }\n';
    await writeFile(join(connections, 'mine.yaml'), own);
    const server = serve(t, ['serve'], { SWITCHBOARD_STATE_DIR: state });
    await server.logged('ready');
    assert.deepEqual(await readdir(connections), ['mine.yaml']);
    assert.equal(await readFile(join(connections, 'mine.yaml'), 'utf8'), own);
    server.child.kill('SIGINT');
    assert.equal((await server.ended).code, 0);
  });
});

describe('two servers with one state directory', () => {
  test('of two nodes of one name the second ends with the process of the first; controllers and other names may be beside it', async (t) => {
    const path = await folder(t);
    const { config } = await withPipe(path);
    const env = { SWITCHBOARD_STATE_DIR: join(path, 'state') };
    const start = (name: string, ...args: string[]) =>
      serve(t, ['--config', config, '--endpoint', join(path, name), ...args], env);
    const first = start('first.sock');
    await first.logged('ready');
    const { code, err } = await start('second.sock').ended;
    assert.equal(code, 1);
    assert.match(
      err,
      new RegExp(`works with the state directory \\S+/state: process ${first.child.pid} .*/first\\.sock`),
    );
    assert.equal(await exists(join(path, 'second.sock')), false);
    const beside = [
      start('controller.sock', '--csi-mode', 'controller'),
      start('other.sock', '--csi-name', 'other.csi'),
    ];
    for (const one of beside) await one.logged('ready');
    const cleaned = await switchboard(['node', 'cleanup', '--json', '--yes'], env);
    assert.deepEqual([cleaned.code, JSON.parse(cleaned.out).leftovers], [0, []]);
    first.child.kill('SIGKILL');
    await first.ended;
    const third = start('third.sock');
    await third.logged('ready');
    third.child.kill('SIGTERM');
    assert.equal((await third.ended).code, 0);
    await start('fourth.sock').logged('ready');
  });
});

describe('stopping', () => {
  const info = (socket: string): Promise<Finished> =>
    switchboard(['ctl', 'info', '--json'], { CSI_ENDPOINT: `unix://${socket}` });

  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    test(`${name}: no new connections, the call in flight is finished, the socket is gone, exit code 0`, async (t) => {
      const { config, pipe, socket } = await withPipe(await folder(t));
      const server = serve(t, ['--driver-config-file', config, '--server-socket', socket]);
      await server.logged('ready');
      const answer = info(socket);
      const writer = await open(pipe, 'w');
      server.child.kill(name);
      assert.equal((await server.logged('stopping')).callsInFlight, 1);
      assert.match((await info(socket)).err, /nobody answers|UNAVAILABLE/);
      await writer.write('zone-a');
      await writer.close();
      const { code, out } = await answer;
      assert.equal(code, 0);
      assert.deepEqual(JSON.parse(out).node.topology, { 'org.democratic-csi.topology/zone': 'zone-a' });
      await server.logged('stopped');
      assert.deepEqual((await server.ended).code, 0);
      assert.equal(await exists(socket), false);
    });
  }

  test('a second signal cancels what is in flight', async (t) => {
    const { config, pipe, socket } = await withPipe(await folder(t));
    const server = serve(t, ['--config', config, '--endpoint', socket, '--stop-timeout', '3600']);
    await server.logged('ready');
    const answer = info(socket);
    const writer = await open(pipe, 'w');
    t.after(() => writer.close());
    server.child.kill('SIGTERM');
    await server.logged('stopping');
    server.child.kill('SIGTERM');
    assert.equal((await answer).code, 1);
    await server.logged('stopped');
    assert.equal(await exists(socket), false);
    // A thread hangs in the pipe: an orderly exit would wait for it for ever.
    assert.equal((await server.ended).signal, 'SIGTERM');
  });

  test('the time limit cancels what is in flight', async (t) => {
    const { config, pipe, socket } = await withPipe(await folder(t));
    const server = serve(t, ['--config', config, '--endpoint', socket], { SWITCHBOARD_STOP_TIMEOUT: '0' });
    await server.logged('ready');
    const answer = info(socket);
    const writer = await open(pipe, 'w');
    t.after(() => writer.close());
    server.child.kill('SIGTERM');
    assert.equal((await answer).code, 1);
    await server.logged('stopped');
    assert.equal((await server.ended).signal, 'SIGTERM');
  });

  test('SIGHUP makes it look at the connection files, before somebody uses them', async (t) => {
    const state = await folder(t);
    const server = serve(t, [], { SWITCHBOARD_STATE_DIR: state });
    await server.logged('ready');
    await writeFile(join(state, 'connections/broken.yaml'), 'driver: unheard-of\n');
    server.child.kill('SIGHUP');
    await server.logged(/^SIGHUP: /);
    await server.logged(/^the connection file cannot be used: .*unheard-of/s);
    assert.equal((await switchboard(['probe'], { SWITCHBOARD_STATE_DIR: state })).code, 0);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });
});

describe('starting', () => {
  test('CSI_ENDPOINT, as Nomad hands it over', async (t) => {
    const path = await folder(t);
    const config = join(path, 'main.yaml');
    await writeFile(config, `driver: proxy\nproxy: { configFolder: ${path} }\n`);
    const env = { CSI_ENDPOINT: `unix://${path}/nomad.sock`, DEMOCRATIC_CSI_DRIVER_CONFIG_FILE: config };
    const server = serve(t, ['--csi-name', 'org.example', '--csi-mode', 'node'], env);
    const ready = await server.logged('ready');
    assert.deepEqual([ready.addresses, ready.modes], [[env.CSI_ENDPOINT], ['node']]);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });

  test('older clients are told only what their version of the specification knows', async (t) => {
    const state = await folder(t);
    const env = { SWITCHBOARD_STATE_DIR: state };
    const server = serve(t, ['--csi-version', '1.2.0'], env);
    await server.logged('ready');
    const { out } = await switchboard(['ctl', 'info', '--json'], env);
    const { controller, node } = JSON.parse(out).capabilities;
    assert.ok(controller.includes('EXPAND_VOLUME'));
    for (const late of ['GET_VOLUME', 'VOLUME_CONDITION', 'SINGLE_NODE_MULTI_WRITER', 'GET_SNAPSHOT']) {
      assert.ok(!controller.includes(late) && !node.includes(late), late);
    }
    server.child.kill('SIGTERM');
    await server.ended;
  });

  test('a broken configuration: every mistake with its place, exit code 1', async (t) => {
    const path = await folder(t);
    const config = join(path, 'main.yaml');
    await writeFile(config, 'driver: proxy\nproxy:\n  cacheTimeoutMinutes: soon\n');
    const { code, err } = await serve(t, ['--config', config, '--endpoint', join(path, 'x.sock')]).ended;
    assert.equal(code, 1);
    assert.match(err, /main\.yaml:2:1: error: .*configFolder/);
    assert.match(err, /main\.yaml:3:24: error: .*cacheTimeoutMinutes/);
    assert.doesNotMatch(err, /\n {4}at /);
  });

  test('with a failure delay: it tells at once, and ends when it is told to', async (t) => {
    const path = await folder(t);
    const args = ['--config', join(path, 'none.yaml'), '--endpoint', join(path, 'x.sock')];
    const server = serve(t, args, { SWITCHBOARD_FAILURE_DELAY: '600' });
    const [chunk] = await once(server.child.stderr, 'data');
    assert.match(String(chunk), /none\.yaml: error: cannot read the configuration/);
    server.child.kill('SIGTERM');
    assert.deepEqual(await server.ended, { code: 1, signal: null, err: String(chunk) });
  });

  test('a place where no socket can be: one line, exit code 1', async (t) => {
    const path = await folder(t);
    await writeFile(join(path, 'file'), '');
    const server = serve(t, ['--endpoint', join(path, 'file')], { SWITCHBOARD_STATE_DIR: path });
    const { code, err } = await server.ended;
    assert.equal(code, 1);
    assert.match(err, /^error: .*\n$/);
    assert.equal(await readFile(join(path, 'file'), 'utf8'), '');
  });

  test('a defect: one line, exit code 70', async (t) => {
    // Throws, from nowhere, as soon as somebody listens for that.
    const defect = `process.once('newListener', () => setImmediate(() => { throw new Error('of no one') }))`;
    const { PATH = '', NODE_OPTIONS = '' } = process.env;
    const child = spawn(process.execPath, ['--import', `data:text/javascript,${defect}`, main, 'ctl', 'list'], {
      env: { PATH, NODE_OPTIONS },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(() => child.kill('SIGKILL'));
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    const [code] = await once(child, 'close');
    assert.deepEqual([code, err], [70, 'internal error: of no one\n']);
  });
});

test('a connection file that cannot be used is told of at start, and the server serves the others', async (t) => {
  const state = await folder(t);
  await mkdir(join(state, 'connections'));
  await writeFile(join(state, 'connections/bad.yaml'), 'driver: local-hostpat\n');
  const server = serve(t, [], { SWITCHBOARD_STATE_DIR: state });
  await server.logged('ready');
  const place = join(state, 'connections/bad.yaml:1:9');
  const line = await server.logged(
    `the connection file cannot be used: ${place}: there is no driver "local-hostpat"; did you mean local-hostpath?; its calls fail until that is repaired`,
  );
  assert.equal(line.connection, 'bad');
});
