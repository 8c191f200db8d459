/** What the listener's tests share: servers in both runtimes, and clients that write HTTP/2 by hand. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { denoPath } from '../../scripts/lib/deno-path.ts';
import type { ServerOrder } from './listener-server.ts';

const program = fileURLToPath(new URL('./listener-server.ts', import.meta.url));

export const runtimes = {
  node: [process.execPath],
  deno: [denoPath(), 'run', '-A', '--quiet'],
} as const;
export type Runtime = keyof typeof runtimes;
export const runtimeNames = Object.keys(runtimes) as Runtime[];

export interface Fact {
  readonly addresses?: readonly string[];
  readonly variables?: readonly string[];
  readonly childHasSocket?: boolean;
  readonly error?: string;
  readonly crash?: string;
  readonly stopped?: boolean;
  readonly closed?: boolean;
}

export interface TestServer {
  readonly child: ChildProcess;
  readonly addresses: readonly string[];
  readonly first: Fact;
  /** Log lines so far. */
  readonly log: () => string;
  /** The next thing the server says. */
  readonly next: () => Promise<Fact>;
  /** Asks it to stop. */
  readonly stop: () => void;
  /** What went wrong in it and was not handled. */
  readonly crashes: () => readonly string[];
}

export interface StartOptions {
  /** Passed on as file descriptor 3, as systemd does. */
  readonly inherit?: Socket | number;
  readonly names?: string;
}

/** Starts the server program and waits for its first word. It is killed after the test. */
export async function startServer(
  t: TestContext,
  runtime: Runtime,
  order: ServerOrder,
  { inherit, names }: StartOptions = {},
): Promise<TestServer> {
  const argv = [...runtimes[runtime], program, JSON.stringify(order)];
  const stdio = ['pipe', 'pipe', 'pipe', ...(inherit === undefined ? [] : [inherit])] as const;
  const variables = `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=${names ?? ''} `;
  const script = `${inherit === undefined ? '' : variables}exec "$@"`;
  const child = spawn('sh', ['-c', script, 'sh', ...argv], { stdio: [...stdio] });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  let log = '';
  child.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  const crashes: string[] = [];
  const facts: Fact[] = [];
  let waiting: ((fact: Fact) => void) | undefined;
  const tell = (fact: Fact) => {
    if (fact.crash !== undefined) crashes.push(fact.crash);
    else if (waiting) {
      const resolve = waiting;
      waiting = undefined;
      resolve(fact);
    } else facts.push(fact);
  };
  createInterface({ input: child.stdout! }).on('line', (line) => tell(JSON.parse(line) as Fact));
  child.once('close', (code, signal) => tell({ error: `ended with ${code ?? signal}: ${log.slice(-2000)}` }));
  const next = () =>
    new Promise<Fact>((resolve) => {
      const fact = facts.shift();
      if (fact) resolve(fact);
      else waiting = resolve;
    });
  const first = await next();
  return {
    child,
    first,
    addresses: first.addresses ?? [],
    log: () => log,
    next,
    stop: () => child.stdin?.write('stop\n'),
    crashes: () => crashes,
  };
}

/** A directory that is removed after the test. */
export async function scratch(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'listener-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}
