import { spawn } from 'node:child_process';

export interface RunOptions {
  readonly input?: string | Buffer | undefined;
  readonly timeoutMs?: number | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

export interface Result {
  /** -1: it could not be started, or its time was over. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of this machine to its end. Never rejects. It is killed when its time is over, and with this process. */
export function runProgram(argv: readonly string[], options: RunOptions = {}): Promise<Result> {
  const { input, timeoutMs = 60_000, env } = options;
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], {
    env: { ...process.env, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      stderr += `\nstopped after ${timeoutMs} ms`;
      child.kill('SIGKILL');
      // Another process may hold the other ends, such as the one that keeps a connection of ssh.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, timeoutMs);
    const end = (code: number | null) => {
      clearTimeout(limit);
      resolve({ code: code ?? -1, stdout, stderr });
    };
    child.on('error', (error) => {
      stderr += error.message;
      end(-1);
    });
    child.on('close', end);
  });
}

/** What it printed. Rejects with everything it printed when it fails. */
export async function output(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runProgram(argv, options);
  if (code === 0) return stdout;
  throw new Error(`${argv.at(-1)}\nended with ${code}: ${stdout}${stderr}`.trimEnd());
}
