/**
 * A real Docker Engine for the tests, by a script outside of this repository (`docker-lab` in ../shared/lab, or in the folder that SWITCHBOARD_LAB
 * names): dockerd in mount and network namespaces of its own, under a home of its own.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, open, readFile, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { repository } from '../../scripts/lib/repository.ts';

const script = resolve(process.env.SWITCHBOARD_LAB ?? join(repository, '../shared/lab'), 'docker-lab');
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'switchboard-lab');
/** Another one than the lab that a person may be using. */
const home = join(cache, 'tests');

/** Why there is no engine here, or false. */
export const noLab: string | false = !existsSync(script)
  ? `NOT TESTED: there is no ${script} (not in CI)`
  : process.getuid?.() !== 0 && 'NOT TESTED: a Docker engine takes root';

export interface DockerLab {
  /** Runs `docker ARGS…`. Rejects with what it printed when it fails. */
  docker(...args: string[]): Promise<string>;
  /** The same, for what must fail: what it printed. */
  refused(...args: string[]): Promise<string>;
  /** Runs a program in dockerd's namespaces. */
  enter(...command: string[]): Promise<string>;
  /** Starts one there, which goes on. */
  spawnInside(command: readonly string[], env?: NodeJS.ProcessEnv): ChildProcess;
  /** Mount points in dockerd's namespace. */
  mountPoints(): Promise<readonly string[]>;
  /** kill -9 of dockerd (with which its containerd goes), and a new start in the same namespaces. */
  killDaemon(): Promise<void>;
  startDaemon(): Promise<void>;
  /** What there is to tell when a test has failed: containers, services, and the end of dockerd's log, which the plugin's is part of. */
  story(): Promise<string>;
  /** The folder of Docker's data. */
  readonly data: string;
  close(): Promise<void>;
}

interface Result {
  readonly code: number;
  readonly out: string;
}

export async function openDockerLab(): Promise<DockerLab> {
  const docker = join(home, 'docker');
  await mkdir(docker, { recursive: true });
  // An engine that was fetched before serves here too.
  for (const part of ['bin', 'busybox']) {
    if (
      !existsSync(join(docker, part)) &&
      existsSync(join(cache, 'docker', part, part === 'bin' ? 'dockerd' : 'bin'))
    ) {
      await cp(join(cache, 'docker', part), join(docker, part), { recursive: true, verbatimSymlinks: true });
    }
  }
  const lab = (args: readonly string[], limitMs = 120_000) => run(script, args, { LAB_HOME: home }, limitMs);
  // What a run that was ended in the middle left.
  await lab(['down']);
  good(await lab(['up'], 300_000));
  const socket = join(docker, 'run/docker.sock');
  const pidFile = join(docker, 'dockerd.pid');
  const readPid = async () => Number(await readFile(pidFile, 'utf8'));
  const daemon = await readPid();
  const command = (await readFile(`/proc/${daemon}/cmdline`, 'utf8')).split('\0').filter(Boolean);
  // Keeps the namespaces while there is no dockerd in them.
  const inside = (program: readonly string[]) => ['-m', '-n', '-t', String(daemon), ...program];
  const holder = spawn('nsenter', inside(['sleep', 'infinity']), { stdio: 'ignore' });
  await once(holder, 'spawn');
  const entering = (program: readonly string[]) => ['-m', '-n', '-t', String(holder.pid), ...program];
  await until(async () => (await run('nsenter', entering(['true']), {}, 5000)).code === 0, 10_000, 'the namespaces');
  const client = (args: readonly string[]) =>
    run(
      join(docker, 'bin/docker'),
      ['-H', `unix://${socket}`, ...args],
      { DOCKER_CONFIG: join(docker, 'config') },
      120_000,
    );

  return {
    data: join(docker, 'data'),
    docker: async (...args) => good(await client(args), args),
    async refused(...args) {
      const { code, out } = await client(args);
      if (code === 0) throw new Error(`docker ${args.join(' ')} succeeded: ${out}`);
      return out;
    },
    enter: async (...program) => good(await run('nsenter', entering(program), {}, 60_000), program),
    spawnInside: (program, env = {}) =>
      spawn('nsenter', entering(program), { stdio: ['ignore', 'ignore', 'ignore'], env: { ...process.env, ...env } }),
    async mountPoints() {
      const table = good(await run('nsenter', entering(['cat', '/proc/self/mountinfo']), {}, 10_000));
      return table.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
    },
    async killDaemon() {
      const pid = await readPid();
      process.kill(pid, 'SIGKILL');
      await until(() => !isRunning(pid), 10_000, 'the end of dockerd');
      await rm(pidFile, { force: true });
    },
    async startDaemon() {
      const log = await open(join(docker, 'dockerd.log'), 'a');
      const env = { ...process.env, PATH: `${join(docker, 'bin')}:/usr/sbin:/usr/bin:/sbin:/bin` };
      const child = spawn('nsenter', entering(command), { detached: true, stdio: ['ignore', log.fd, log.fd], env });
      child.unref();
      await log.close();
      await until(async () => (await client(['version'])).code === 0, 60_000, 'the start of dockerd');
    },
    async story() {
      const told = [
        ['ps', '-a', '--no-trunc'],
        ['volume', 'ls'],
        ['service', 'ls'],
        ['volume', 'ls', '--cluster'],
      ];
      const parts = await Promise.all(told.map(async (args) => (await client(args)).out));
      const log = await readFile(join(docker, 'dockerd.log'), 'utf8');
      return [...parts, ...log.trimEnd().split('\n').slice(-60)].join('\n');
    },
    async close() {
      await lab(['down']);
      holder.kill('SIGKILL');
      await once(holder, 'close');
    },
  };
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv, limitMs: number): Promise<Result> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env }, timeout: limitMs, maxBuffer: 2 ** 24 };
    execFile(program, [...args], options, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : 1) : 0;
      resolve({ code, out: error ? `${stdout}${stderr}${error.killed ? 'took too long' : ''}` : stdout });
    });
  });
}

function good({ code, out }: Result, what: readonly string[] = []): string {
  if (code === 0) return out;
  throw new Error(`${what.join(' ')}: ${out}`);
}

/** A process that has ended, waited for or not, is none. */
function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}/exe`);
}

/** Waits for something that no event tells. */
export async function until(holds: () => boolean | Promise<boolean>, limitMs: number, what: string): Promise<void> {
  for (const end = performance.now() + limitMs; performance.now() < end; await setTimeout(100)) {
    if (await holds()) return;
  }
  throw new Error(`${what}: it did not come within ${limitMs / 1000} s`);
}
