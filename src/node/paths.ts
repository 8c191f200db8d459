/**
 * Looking at paths of the node without ever hanging: what lies on a mount that may not answer is looked at by a child with a time limit,
 * everything else directly.
 */
import { lstat, mkdir, realpath, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path/posix';
import { CommandFailed } from '../backends/exec/command-failed.ts';
import type { CallContext } from '../core/call.ts';
import { CallError, errnoOf } from '../core/errors.ts';
import { ifThere } from '../core/if-there.ts';
import { deviceNumber } from './device-number.ts';
import { mayHang } from './file-system-kind.ts';
import type { MountTable } from './mount-table.ts';
import type { NodeTools } from './tools.ts';

/** What a path leads to. `dead`: its file system answers with an error. */
export type PathKind =
  | { readonly is: 'missing' }
  | { readonly is: 'directory' | 'file' | 'other' }
  | { readonly is: 'device' /** `major:minor` */; readonly device: string }
  | { readonly is: 'dead'; readonly why: string };

/** An absolute path without `.`, `..` and superfluous slashes. Throws INVALID_ARGUMENT for a path that is not absolute, climbs, or is the root. */
export function checkedPath(path: string, what: string): string {
  const problem = problemWith(path);
  if (problem) throw new CallError('INVALID_ARGUMENT', `${what} ${JSON.stringify(path.slice(0, 200))} ${problem}`);
  return `/${segments(path).join('/')}`;
}

function problemWith(path: string): string | undefined {
  if (!path.startsWith('/')) return 'is not absolute';
  if (path.includes('\0')) return 'contains NUL';
  if (path.length > 4095) return 'is too long';
  const parts = segments(path);
  if (parts.includes('.') || parts.includes('..')) return 'contains . or ..';
  return parts.length === 0 ? 'is the root directory' : undefined;
}

function segments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/**
 * The path with symbolic links in its *parent* resolved, as the mount table knows it; the last segment is left alone, because looking at it
 * would touch what is mounted there. Undefined when the parent does not exist.
 */
export async function resolvePlace(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  path: string,
): Promise<string | undefined> {
  const parent = await resolvePath(call, tools, table, dirname(path));
  return parent === undefined ? undefined : join(parent, basename(path));
}

/** The path with all symbolic links resolved; undefined when it does not exist. */
export async function resolvePath(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  path: string,
): Promise<string | undefined> {
  if (!mayHang(table.covering(path))) return await ifThere(() => realpath(path));
  try {
    const command = { program: 'realpath', args: ['-e', '-z', '--', path], timeoutMs: tools.limits.mount };
    const { stdout } = await tools.run(call, command);
    return stdout.replace(/\0$/, '');
  } catch (error) {
    if (error instanceof CommandFailed && isMissing(error)) return undefined;
    throw error;
  }
}

/** What a path leads to, symbolic links followed. Throws only what {@link NodeTools.run} throws for a call that is over. */
export async function inspectPath(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  path: string,
): Promise<PathKind> {
  return mayHang(table.covering(path)) ? await inspectByChild(call, tools, path) : await inspectHere(path);
}

async function inspectHere(path: string): Promise<PathKind> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return { is: 'directory' };
    if (found.isFile()) return { is: 'file' };
    return found.isBlockDevice() ? { is: 'device', device: deviceNumber(found.rdev) } : { is: 'other' };
  } catch (error) {
    const errno = errnoOf(error);
    return errno === 'ENOENT' || errno === 'ENOTDIR' ? { is: 'missing' } : { is: 'dead', why: errno ?? String(error) };
  }
}

async function inspectByChild(call: CallContext, tools: NodeTools, path: string): Promise<PathKind> {
  try {
    const { stdout } = await tools.run(call, {
      program: 'stat',
      args: ['-L', '-c', '%f %t %T', '--', path],
      // A server that is there answers at once; a call has more to do than to wait for one that is not.
      timeoutMs: Math.min(tools.limits.mount, 5000),
    });
    const [mode = 0, major = 0, minor = 0] = stdout
      .trim()
      .split(' ')
      .map((hex) => Number.parseInt(hex, 16));
    const kinds = { 16384: 'directory', 32768: 'file' } as const;
    const type = mode & 0xf000;
    if (type === 0x6000) return { is: 'device', device: `${major}:${minor}` };
    return { is: kinds[type as keyof typeof kinds] ?? 'other' };
  } catch (error) {
    if (error instanceof CommandFailed) {
      return isMissing(error) ? { is: 'missing' } : { is: 'dead', why: error.stderr };
    }
    if (error instanceof CallError && error.code === 'DEADLINE_EXCEEDED' && !call.signal.aborted) {
      return { is: 'dead', why: 'it does not answer' };
    }
    throw error;
  }
}

function isMissing(error: CommandFailed): boolean {
  return /no such file|not a directory/i.test(error.stderr);
}

/** As {@link resolvePlace}, and makes the parent when it does not exist. */
export async function preparePlace(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  path: string,
): Promise<string> {
  const place = await resolvePlace(call, tools, table, path);
  if (place !== undefined) return place;
  await mkdir(dirname(path), { recursive: true });
  return join(await realpath(dirname(path)), basename(path));
}

/**
 * Makes the place where something will be mounted. True when it was not there before. Throws FAILED_PRECONDITION when there is something of
 * another kind. Nothing may be mounted there: what is mounted could be dead.
 */
export async function makePlace(path: string, kind: 'directory' | 'file'): Promise<boolean> {
  try {
    if (kind === 'directory') await mkdir(path, { mode: 0o750 });
    else await writeFile(path, '', { flag: 'wx', mode: 0o640 });
    return true;
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  const found = await lstat(path);
  if (kind === 'directory' ? found.isDirectory() : found.isFile()) return false;
  throw new CallError('FAILED_PRECONDITION', `${path} exists and is no ${kind}; remove it`);
}

/** Removes an empty directory or an empty file; nothing else. True when nothing is left there. */
export async function removePlace(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return true;
    if (errno === 'ENOTEMPTY' || errno === 'EEXIST') return false;
    if (errno !== 'ENOTDIR') throw error;
  }
  const found = await ifThere(() => lstat(path));
  if (!found) return true;
  if (!found.isFile() || found.size > 0) return false;
  await ifThere(() => unlink(path));
  return true;
}
