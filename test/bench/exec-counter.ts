/** Counts the programs that a running process starts, with strace(1), so that it works for any plugin. */
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { needProgram, type Say } from '../../scripts/executable/tools.ts';
import { processTree } from './process-tree.ts';

export interface ExecCounter {
  /** The programs started since the last time it was asked. */
  take(): Promise<string[]>;
  stop(): Promise<void>;
}

/** Undefined where strace is not to be had or may not look. While it looks on, the process is slow: take no times. */
export async function countExecs(pid: number, file: string, say: Say): Promise<ExecCounter | undefined> {
  if (!(await needProgram('strace', 'strace', say))) return undefined;
  const pids = (await processTree(pid)).flatMap((one) => ['-p', String(one)]);
  const args = ['-f', '-qq', '-e', 'trace=execve', '-e', 'signal=none', '-z', '-o', file, ...pids];
  const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let complaint = '';
  strace.stderr.on('data', (chunk) => (complaint += chunk));
  const ended = new Promise<void>((resolve) => strace.once('close', () => resolve()));
  if (!(await Promise.race([attached(pid, () => strace.exitCode !== null), ended.then(() => false)]))) {
    say(`programs cannot be counted: ${complaint.trim()}`);
    return undefined;
  }
  let seen = 0;
  return {
    async take() {
      // strace writes an execve down before it lets the program run, so before anybody can have waited for its end.
      const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => / execve\("/.test(line));
      const fresh = lines.slice(seen).map((line) => /execve\("([^"]*)"/.exec(line)?.[1] ?? '?');
      seen = lines.length;
      return fresh;
    },
    async stop() {
      strace.kill('SIGINT');
      await ended;
    },
  };
}

/** Resolves when every thread has its tracer; false when that will not happen. */
async function attached(pid: number, hasEnded: () => boolean): Promise<boolean> {
  while (!hasEnded()) {
    const threads = await readdir(`/proc/${pid}/task`);
    const states = await Promise.all(threads.map((one) => readFile(`/proc/${pid}/task/${one}/status`, 'utf8')));
    if (states.every((state) => !/^TracerPid:\s+0$/m.test(state))) return true;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return false;
}
