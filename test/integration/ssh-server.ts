/** A real OpenSSH server on this machine, with keys and a configuration of its own. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { SshSettings } from '../../src/backends/ssh/settings.ts';

export interface SshServer {
  readonly folder: string;
  readonly port: number;
  readonly settings: SshSettings;
  /** The server's public key as a line of known_hosts has it: type and key. */
  readonly hostKey: string;
  start(): Promise<void>;
  /** Kills the server and all its connections. */
  kill(): Promise<void>;
}

export async function sshServer(t: TestContext, lines: readonly string[] = []): Promise<SshServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sshd-'));
  const port = await freePort();
  for (const name of ['host', 'user', 'locked']) {
    const passphrase = name === 'locked' ? 'open, please' : '';
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-f', join(folder, name)]);
  }
  const keys = await Promise.all(['user.pub', 'locked.pub'].map((name) => readFile(join(folder, name), 'utf8')));
  await writeFile(join(folder, 'authorized_keys'), keys.join(''), { mode: 0o600 });
  await writeFile(
    join(folder, 'sshd_config'),
    [
      `ListenAddress 127.0.0.1:${port}`,
      `HostKey ${folder}/host`,
      `AuthorizedKeysFile ${folder}/authorized_keys`,
      `PidFile ${folder}/pid`,
      'StrictModes no',
      'UsePAM no',
      'PermitRootLogin yes',
      // What the account's own shell does at the start is no business of these tests.
      `SetEnv HOME=${folder}`,
      ...lines,
      '',
    ].join('\n'),
  );
  await mkdir('/run/sshd', { recursive: true });
  let server: ChildProcess | undefined;
  const kill = async () => {
    const { pid } = server ?? {};
    if (!server || pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    for (const one of [...descendants(pid), pid]) signal(one);
    await gone;
  };
  const start = async () => {
    server = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', join(folder, 'sshd_config')], { stdio: 'ignore' });
    server.on('error', () => {});
    await until(() => reaches(port));
  };
  t.after(async () => {
    await kill();
    await rm(folder, { recursive: true });
  });
  await start();
  const [type, key] = (await readFile(join(folder, 'host.pub'), 'utf8')).split(' ');
  return {
    folder,
    port,
    hostKey: `${type} ${key}`,
    settings: {
      host: '127.0.0.1',
      port,
      username: 'root',
      privateKey: await readFile(join(folder, 'user'), 'utf8'),
      hostKey: {},
      keepaliveMs: 10_000,
      connectMs: 20_000,
      channels: 8,
    },
    start,
    kill,
  };
}

/** Waits until something is so. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = 400; left > 0; left--) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('it did not come to be so within 10 s');
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

function reaches(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function descendants(pid: number): number[] {
  const children = readChildren(pid);
  return children.flatMap((child) => [...descendants(child), child]);
}

function readChildren(pid: number): number[] {
  try {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
      .trim()
      .split(/\s+/)
      .map(Number);
  } catch {
    return [];
  }
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

export interface Cable {
  readonly port: number;
  /** Nothing is let through any more, in either direction, and nobody is told. */
  cut(): void;
}

/** A cable to a port of this machine that can be cut. */
export async function cable(t: TestContext, to: number): Promise<Cable> {
  const sockets: Socket[] = [];
  const server: Server = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    cut() {
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
  };
}
