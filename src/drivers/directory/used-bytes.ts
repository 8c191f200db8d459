import type { Call, Directory } from './directory.ts';

const limitMs = 3_600_000;

/** Bytes that a folder takes on the disk. */
export async function usedBytes({ run, hostView }: Directory, call: Call, path: string): Promise<number> {
  const args = ['-s', '--block-size=1', '--', await hostView.pathOf(call, path)];
  const { stdout } = await run(call, { program: 'du', args, timeoutMs: limitMs });
  return Number.parseInt(stdout, 10) || 0;
}
