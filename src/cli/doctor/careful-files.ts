import type { Stats, StatsFs } from 'node:fs';
import { lstat, readdir, readFile, readlink, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { RunCommand } from '../../backends/exec/run.ts';
import { defaultTimeLimits } from '../../backends/exec/time-limits.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError, errnoOf } from '../../core/errors.ts';
import { mayHang } from '../../node/file-system-kind.ts';
import type { Mount, MountTable } from '../../node/mount-table.ts';
import { remoteUsage } from '../../node/remote-usage.ts';
import { bounded } from './bounded.ts';
import type { FileFacts, Files, Space } from './inspection.ts';

/** Milliseconds for one look. */
const limitMs = 2000;

const mostLinks = 40;

/** Files as this process sees them; before each step along a path the mount table tells whether that step may hang. */
export function carefulFiles(mounts: MountTable, call: CallContext, run: RunCommand): Files {
  const look = async (path: string): Promise<FileFacts | undefined> => {
    const real = await follow(mounts, path);
    if (typeof real !== 'string') throw refusal(path, real);
    const found = await orMissing(() => stat(real));
    return found && factsOf(real, found);
  };
  const local = async <T>(path: string, work: (real: string) => Promise<T>) =>
    bounded(
      limitMs,
      path,
      follow(mounts, path).then((real) => {
        if (typeof real !== 'string') throw refusal(path, real);
        return orMissing(() => work(real));
      }),
    );
  return {
    read: (path) => local(path, (real) => readFile(real, 'utf8')),
    list: (path) => local(path, (real) => readdir(real)),
    look: (path) => bounded(limitMs, path, look(path)),
    async space(path) {
      const real = await bounded(limitMs, path, follow(mounts, path));
      if (typeof real === 'string') return local(real, async (one) => spaceOf(await statfs(one)));
      const tools = {
        run,
        limits: { ...defaultTimeLimits, mount: limitMs },
        settings: {},
        readTable: async () => mounts,
      };
      return spaceOf(await remoteUsage(call, tools, real));
    },
  };
}

/** Where a path leads, or the mount on its way that may hang. */
async function follow(mounts: MountTable, path: string): Promise<string | Mount> {
  const left = path.split('/').filter((one) => one !== '' && one !== '.');
  let resolved = '/';
  for (let links = 0; left.length > 0; ) {
    const next = left.shift() as string;
    const candidate = join(resolved, next);
    const mount = mounts.covering(candidate);
    if (mount && mayHang(mount)) return mount;
    const target = next === '..' ? undefined : await orMissing(() => linkAt(candidate));
    if (!target || links > mostLinks) {
      resolved = candidate;
      continue;
    }
    links += 1;
    if (target.startsWith('/')) resolved = '/';
    left.unshift(...target.split('/').filter((one) => one !== '' && one !== '.'));
  }
  return resolved;
}

async function linkAt(path: string): Promise<string | undefined> {
  return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
}

function refusal(path: string, mount: Mount): CallError {
  const where = `${mount.mountPoint} (${mount.fsType}), which may hang`;
  return new CallError('UNAVAILABLE', `${path} is not looked at: it is on ${where}`);
}

async function orMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
    throw error;
  }
}

function factsOf(path: string, found: Stats): FileFacts {
  const kind = found.isFile() ? 'file' : found.isDirectory() ? 'directory' : found.isSocket() ? 'socket' : 'other';
  return { kind, mode: found.mode & 0o7777, uid: found.uid, gid: found.gid, modified: found.mtimeMs, path };
}

function spaceOf({
  bsize,
  blocks,
  bavail,
  files,
  ffree,
}: Pick<StatsFs, 'bsize' | 'blocks' | 'bavail' | 'files' | 'ffree'>): Space {
  return { bytes: bsize * blocks, freeBytes: bsize * bavail, files, freeFiles: ffree };
}
