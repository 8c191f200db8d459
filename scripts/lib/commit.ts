import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const git = promisify(execFile);

/** The commit that is checked out, `-dirty` when tracked files differ from it; `unknown` outside of a git repository. */
export async function commitOf(folder: string): Promise<string> {
  try {
    const { stdout: commit } = await git('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: folder });
    const { stdout: changes } = await git('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: folder });
    return commit.trim() + (changes === '' ? '' : '-dirty');
  } catch {
    return 'unknown';
  }
}
