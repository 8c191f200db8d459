/**
 * Going on with a copy that was broken off. That is work for rsync(1), where the host has it: it looks at every file of both sides, and a file that
 * was being written has neither the size nor the time of its source. What cp(1) could do is not enough, since it takes such a file for a newer one.
 */
import { throwIfOver } from '../../core/call.ts';
import { asCallError } from '../../core/errors.ts';
import type { CopyProgress } from './copy-progress.ts';
import type { Call, Directory } from './directory.ts';
import { flush } from './flush.ts';
import { noLimitMs } from './no-limit.ts';
import { whileMeasured } from './while-measured.ts';

/**
 * Everything that a copy keeps: hard links, ACLs, extended attributes, holes; and nothing that the source has no more. Times are compared to the
 * nanosecond: to the second, which is the default, a file that was written just before its copy looks like a half written copy of the same size.
 */
const flags = ['-aHAXS', '--numeric-ids', '--whole-file', '--delete', '--modify-window=-1', '--quiet'] as const;

/** Some files disappeared before their turn. */
const vanished = 24;

/**
 * Makes `to`, where a copy of the folder `from` was broken off, a whole one, and waits until it is on the disk. False: it cannot, and `to` is empty
 * again. Throws RESOURCE_EXHAUSTED when it does not fit, and the signal's reason.
 */
export async function completeCopy(
  directory: Directory,
  call: Call,
  { from, to }: { readonly from: string; readonly to: string },
  progress: CopyProgress,
): Promise<boolean> {
  const { run, hostView, files, log } = directory;
  try {
    const args = [...flags, '--', `${await hostView.pathOf(call, from)}/`, `${await hostView.pathOf(call, to)}/`];
    log.info('a copy that was broken off goes on', { from });
    const { code } = await whileMeasured(directory, call, to, progress, () =>
      run(call, { program: 'rsync', args, timeoutMs: noLimitMs, accept: [0, vanished] }),
    );
    if (code === vanished) log.warn('files disappeared while their volume was copied', { from });
    await flush(directory, call, to);
    return true;
  } catch (error) {
    throwIfOver(call.signal);
    if (asCallError(error).code === 'RESOURCE_EXHAUSTED') throw error;
    log.info('it begins anew', { from, why: asCallError(error).message });
    await files.removeTree(to, to, call.signal);
    await files.makeFolder(to);
    return false;
  }
}
