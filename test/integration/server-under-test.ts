/** The program as it is delivered, as a process in a folder of its own, for tests that treat it badly. */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { buildBundle, bundlePath } from '../../scripts/lib/build-bundle.ts';
import { connect } from '../../src/cli/client.ts';
import { clientTarget } from '../../src/cli/client-target.ts';
import type { Init } from '../../src/generated/csi.js';
import { type Method, services } from '../../src/generated/services.js';
import { filesBelow, mountsBelow, removeFolder } from '../conformance/leftovers.ts';
import { type LogLine, readLog } from './log-lines.ts';

await buildBundle();

/** A folder with a main file (a proxy), connections, their data, and programs that come before the host's. */
export interface Site {
  readonly root: string;
  readonly socket: string;
  path(...names: string[]): string;
  /** The base path of a connection of local directories. */
  data(connection: string): string;
  /** Writes a connection's file; without a text one of local directories. */
  connect(name: string, text?: string): Promise<void>;
  /** Puts a shell script in front of a program of the host. */
  standIn(program: string, script: string): Promise<void>;
  start(options?: StartOptions): Promise<Server>;
  /** Processes that are there because of this site: servers, and whatever they have started. */
  processes(): Promise<readonly number[]>;
}

export interface StartOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Goes before the command line of the program. */
  readonly under?: readonly string[];
}

export interface Server {
  readonly pid: number;
  /** Log lines so far. */
  readonly log: readonly LogLine[];
  readonly ended: Promise<Ending>;
  call<Request, Response>(
    method: Method<Request, Response>,
    request: Init<Request>,
    options?: Patience,
  ): Promise<Response>;
  /** Resolves with the next log line of this message. */
  logged(message: string): Promise<LogLine>;
  kill(): Promise<void>;
  /** SIGTERM, which must end it orderly. */
  stop(): Promise<void>;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

export interface Patience {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** The text of a connection file. */
export function localDirectories(base: string): string {
  return `driver: local-hostpath\nlocal-hostpath:\n  shareBasePath: ${base}\n  controllerBasePath: ${base}\n`;
}

/** Everything of it, processes and mounts included, is gone after the test. It begins with a connection `local`. */
export async function makeSite(t: TestContext): Promise<Site> {
  const root = await mkdtemp(join(tmpdir(), 'fault-'));
  const path = (...names: string[]) => join(root, ...names);
  const socket = path('csi.sock');
  const processes = () => processesMarked(path('bin'));
  t.after(async () => {
    for (const pid of await processes()) process.kill(pid, 'SIGKILL');
    await until(async () => (await processes()).length === 0);
    await removeFolder(root);
  });
  for (const name of ['bin', 'connections', 'data']) await mkdir(path(name));
  const config = path('main.yaml');
  await writeFile(
    config,
    `driver: proxy\nproxy:\n  configFolder: ${path('connections')}\n  nodeTopology: { type: node }\n`,
  );
  const site: Site = {
    root,
    socket,
    path,
    data: (connection) => path('data', connection),
    connect: (name, text = localDirectories(path('data', name))) =>
      writeFile(path('connections', `${name}.yaml`), text),
    standIn: (program, script) => writeFile(path('bin', program), `#!/bin/sh\n${script}\n`, { mode: 0o755 }),
    start: ({ args = [], env = {}, under = [] } = {}) => {
      const argv = [...under, process.execPath, bundlePath, '--config', config, '--endpoint', socket, ...args];
      // Children inherit the search path, by which they are found.
      const own = { PATH: `${path('bin')}:${process.env.PATH}`, SWITCHBOARD_STATE_DIR: path('state') };
      return startServer(argv, { ...own, ...env }, socket);
    },
    processes,
  };
  await site.connect('local');
  return site;
}

async function startServer(argv: readonly string[], env: Record<string, string>, socket: string): Promise<Server> {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = endOf(child);
  const { lines: log, logged } = readLog(child.stdout);
  const server = { pid: child.pid ?? 0, log, logged, ended };
  const client = await connect(clientTarget(socket));
  void ended.then(() => client.close());
  await logged('ready').catch(async () => {
    throw new Error((await ended).stderr);
  });
  return {
    ...server,
    call: (method, request, { signal = new AbortController().signal, timeoutMs = 30_000 } = {}) =>
      client.call(method, request, { signal, timeoutMs }),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    async stop() {
      child.kill('SIGTERM');
      const { code, signal, stderr } = await ended;
      assert.deepEqual([code, signal], [0, null], stderr);
    },
  };
}

type Child = ChildProcessByStdio<null, Readable, Readable>;

async function endOf(child: Child): Promise<Ending> {
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const [code, signal] = await once(child, 'close');
  return { code, signal, stderr };
}

/** Waits for something that no event tells; the test runner's time limit ends it. */
export async function until(isTrue: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isTrue())) await setTimeout(10);
}

/** How many file descriptors it has. */
export async function openFiles({ pid }: Server): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

/** Processes, zombies left out, whose search path begins with this folder. */
async function processesMarked(folder: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')));
  const own = String(process.pid);
  return pids.filter((pid, i) => pid !== own && environments[i]?.includes(`PATH=${folder}:`)).map(Number);
}

/** Waits until an assertion holds; after 20 s its failure is thrown. For what no event tells. */
export async function eventually(holds: () => Promise<void>): Promise<void> {
  for (const giveUp = Date.now() + 20_000; Date.now() < giveUp; await setTimeout(20)) {
    const failure = await holds().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure === undefined) return;
  }
  await holds();
}

/**
 * What a server must not keep when no call is in flight: children, mounts, folders of unfinished work. It must be alive and answer, and must
 * not have found a fault in itself. What a cancelled call leaves behind may take a moment to go.
 */
export async function assertAtRest(site: Site, server: Server): Promise<void> {
  await server.call(services.Identity.Probe, {});
  assert.deepEqual(
    server.log.filter(({ level }) => level === 'error'),
    [],
  );
  await eventually(async () => {
    assert.deepEqual(await site.processes(), [server.pid]);
    assert.deepEqual(await mountsBelow(site.root), []);
    const stored = /^[^/]+\/(v|s|\.switchboard\/(v|s))(\/|$)/;
    assert.deepEqual(await filesBelow(site.path('data'), [/^[^/]+$/, stored, layout]), []);
  });
}

/** The same, nothing being stored, and the server ends orderly without leaving anything. */
export async function assertLeavesNothing(site: Site, server: Server): Promise<void> {
  await assertAtRest(site, server);
  await server.stop();
  assert.deepEqual(await site.processes(), []);
  assert.deepEqual(await filesBelow(site.path('data'), [/^[^/]+$/, layout]), []);
  assert.ok(!(await readdir(site.root)).includes('csi.sock'), 'the socket is left behind');
}

/** The folders of an empty base path. */
const layout = /^[^/]+\/(v|s|\.switchboard(\/(v|s|p|c|tmp))?)$/;
