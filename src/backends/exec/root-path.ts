import { readlink } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { errnoOf } from '../../core/errors.ts';

/** As many as the kernel follows. */
const mostLinks = 40;

/**
 * Where a path leads for a process whose root directory is `root`: a path within that root, free of symbolic links. Absolute links begin at
 * that root and `..` never leaves it, as chroot(2) has it. Undefined when it leads nowhere or may not be looked at.
 */
export async function resolveInRoot(root: string, path: string): Promise<string | undefined> {
  const left = segments(path);
  let resolved = '/';
  for (let links = 0; left.length > 0; ) {
    const next = left.shift() as string;
    const candidate = join(resolved, next);
    if (next === '..') {
      resolved = candidate;
      continue;
    }
    const target = await linkAt(join(root, candidate));
    if (target === null) return undefined;
    if (target === undefined) {
      resolved = candidate;
      continue;
    }
    links += 1;
    if (links > mostLinks) return undefined;
    if (target.startsWith('/')) resolved = '/';
    left.unshift(...segments(target));
  }
  return resolved;
}

/** The target of a link, undefined for what is there and is no link, null for what is not there. */
async function linkAt(path: string): Promise<string | undefined | null> {
  try {
    return await readlink(path);
  } catch (error) {
    return errnoOf(error) === 'EINVAL' ? undefined : null;
  }
}

function segments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== '.');
}
