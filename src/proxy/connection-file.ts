/**
 * Noticing that a connection file changed.
 *
 * It is looked at on every use, so an unchanged file must cost one `stat`. Names, times and sizes are only hints: Kubernetes swaps files by a
 * symbolic link, editors rename over them, and two edits can fall into one tick of the clock. What counts is the content.
 */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { readConfigFile } from '../config/read-file.ts';
import { asCallError, CallError, errnoOf } from '../core/errors.ts';

/** A version of a file as it was read. */
export interface FileVersion {
  /** Equal while the file looks the same from outside. */
  readonly looks: string;
  /** False when the file was so new that another edit could still leave its looks unchanged. */
  readonly settled: boolean;
  /** Of the content. */
  readonly hash: string;
}

export type FileLook =
  | { readonly state: 'missing' }
  | { readonly state: 'same'; readonly version: FileVersion }
  | { readonly state: 'changed'; readonly version: FileVersion; readonly text: string };

/** How old the last change must be before equal looks mean equal content, in milliseconds: some file systems keep times in steps of 2 s. */
const settledAfterMs = 2000;

/** What is at `path` now, compared with a version read before. Throws FAILED_PRECONDITION when it exists and cannot be read. */
export async function lookAtFile(path: string, known: FileVersion | undefined): Promise<FileLook> {
  try {
    // The looks are taken before the content: a change in between shows the next time.
    const status = await stat(path, { bigint: true });
    const { dev, ino, size, mtimeNs, ctimeNs, mtimeMs, ctimeMs } = status;
    const looks = [dev, ino, size, mtimeNs, ctimeNs].join(':');
    if (known?.settled && known.looks === looks) return { state: 'same', version: known };
    const settled = Date.now() - Math.max(Number(mtimeMs), Number(ctimeMs)) > settledAfterMs;
    const text = await readConfigFile(path);
    const hash = createHash('sha256').update(text).digest('base64');
    const version = { looks, settled, hash };
    return known?.hash === hash ? { state: 'same', version } : { state: 'changed', version, text };
  } catch (error) {
    if (isMissing(error)) return { state: 'missing' };
    if (error instanceof CallError) throw error;
    throw new CallError(
      'FAILED_PRECONDITION',
      `${path} cannot be read (${errnoOf(error) ?? asCallError(error).message})`,
    );
  }
}

function isMissing(error: unknown): boolean {
  const errno = errnoOf(error) ?? errnoOf(error instanceof Error ? error.cause : undefined);
  return errno === 'ENOENT' || errno === 'ENOTDIR';
}
