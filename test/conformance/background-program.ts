/** A program that runs until it is told to stop: a plugin under test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface BackgroundProgram {
  readonly pid: number;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<Ending>;
  /** SIGTERM, and SIGKILL when it is still there after `limitMs`. Resolves with how it ended. */
  stop(limitMs?: number): Promise<Ending>;
  /** The end of what it wrote to both outputs. */
  logTail(): Promise<string>;
}

export interface BackgroundOptions {
  /** Both outputs go there. */
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a program. Throws when it cannot be started at all. */
export async function startProgram(
  [program, ...args]: readonly string[],
  { logFile, env }: BackgroundOptions,
): Promise<BackgroundProgram> {
  if (program === undefined) throw new Error('there is no program to start');
  const log = await open(logFile, 'a');
  const child = spawn(program, args, {
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, ...env },
  });
  const ended = endOf(child);
  try {
    const pid = await started(child);
    return {
      pid,
      ended,
      async stop(limitMs = 40_000) {
        child.kill('SIGTERM');
        const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
        const ending = await ended;
        clearTimeout(timer);
        return ending;
      },
      logTail: async () => (await readFile(logFile, 'utf8')).slice(-4000),
    };
  } finally {
    await log.close();
  }
}

function started(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child.pid as number));
    child.once('error', reject);
  });
}

function endOf(child: ChildProcess): Promise<Ending> {
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
}
