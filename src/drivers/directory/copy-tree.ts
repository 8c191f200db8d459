/** Copying a folder with all that is in it: owners, modes, times, ACLs, extended attributes, hard links, holes and special files. */
import { CommandFailed } from '../../backends/exec/command-failed.ts';
import type { CommandOutput } from '../../backends/exec/run.ts';
import { CallError, oneLine } from '../../core/errors.ts';
import { completeCopy } from './complete-copy.ts';
import type { CopyProgress } from './copy-progress.ts';
import type { Call, Directory } from './directory.ts';
import { flush } from './flush.ts';
import { noLimitMs } from './no-limit.ts';
import { whileMeasured } from './while-measured.ts';

/**
 * Copies the contents and attributes of the folder `from` into the folder `to`, sharing the blocks where the file system can, and waits until
 * the copy is on the disk. `to` must be within a work folder. Throws RESOURCE_EXHAUSTED when it does not fit.
 *
 * `broken`: a copy of the same folder was broken off there, which is gone on with.
 *
 * A volume may be in use meanwhile: files that disappear before their turn are left out, as in any copy of a moving thing.
 */
export async function copyTree(
  directory: Directory,
  call: Call,
  from: string,
  to: string,
  progress: CopyProgress,
  broken = false,
): Promise<void> {
  if (broken && (await completeCopy(directory, call, { from, to }, progress))) return;
  const { run, hostView, files } = directory;
  const target = await hostView.pathOf(call, to);
  const source = await hostView.pathOf(call, from);
  const attributes = directory.onServer ? [] : ['--preserve=xattr'];
  const args = ['-a', ...attributes, '--reflink=auto', '--sparse=auto', '-T', '--', `${source}/.`, target];
  const copied = await whileMeasured(directory, call, to, progress, () =>
    run(call, { program: 'cp', args, timeoutMs: noLimitMs, accept: [0, 1] }),
  );
  if (copied.code !== 0) {
    if ((await files.kindOf(from)) !== 'directory') {
      throw new CallError('NOT_FOUND', `${from} was removed while it was copied`);
    }
    const gone = onlyVanished(copied);
    if (gone === undefined) throw copyFailure(copied);
    call.log.warn('files disappeared while their volume was copied', { files: gone, from });
  }
  await flush(directory, call, to);
}

/** How many files were gone before they could be copied, when that is all that cp(1) complains of. */
function onlyVanished(output: CommandOutput): number | undefined {
  const lines = output.stderr.split('\n').filter((line) => line !== '');
  const vanished = /^cp: cannot (?:stat|open|access|read symbolic link|read) .*: No such file or directory$/;
  const whole = output.truncated !== true && lines.length > 0;
  return whole && lines.every((line) => vanished.test(line)) ? lines.length : undefined;
}

function copyFailure(output: CommandOutput): CallError {
  if (/unrecognized option|invalid option|invalid argument/.test(output.stderr)) {
    const said = oneLine(output.stderr, 200);
    return new CallError('FAILED_PRECONDITION', `the host's \`cp\` is not the one of GNU coreutils: ${said}`);
  }
  return new CommandFailed({ program: 'cp', exitCode: output.code, signal: null, ...output });
}
