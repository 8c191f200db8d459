import type { Call, Directory } from './directory.ts';
import { noLimitMs } from './no-limit.ts';

/** Waits until all that was written to the file system of this folder is on the disk. */
export async function flush({ run, hostView }: Directory, call: Call, folder: string): Promise<void> {
  await run(call, { program: 'sync', args: ['-f', await hostView.pathOf(call, folder)], timeoutMs: noLimitMs });
}
