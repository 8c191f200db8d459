/** The unix socket's file: made with its mode from the first moment, never in place of anything but a dead socket, removed only while it is ours. */
import { once } from 'node:events';
import { lstatSync, unlinkSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { dirname } from 'node:path';
import { CallError, errnoOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';

const knockLimitMs = 5_000;

export interface UnixSocketOptions {
  /** Absolute, and short enough for the kernel. */
  readonly path: string;
  /** Permission bits of the socket file. */
  readonly mode: number;
  readonly log: Logger;
}

/**
 * Starts `server` at the path and gives back the function that stops it. Makes a missing parent directory (mode 0755). Throws
 * FAILED_PRECONDITION when something is at the path that is not a dead socket, and system errors as they come.
 */
export async function openUnixSocket(server: Server, options: UnixSocketOptions): Promise<() => Promise<void>> {
  const { path, log } = options;
  const made = await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  if (made !== undefined) log.verbose(`made the directory ${made} for the socket`, { socket: path });
  const dead = await findDeadSocket(path);
  const ours = await bind(server, options, dead);
  if (dead) log.verbose(`replaced the dead socket ${path}`);
  // A default ACL on the directory takes the place of the umask.
  if (ours.permissions !== (options.mode & 0o777)) await chmod(path, options.mode & 0o777);
  return () => closeUnixSocket(server, path, ours, log);
}

/**
 * Between the last look at a dead socket and the new one in its place nothing is awaited: another process that starts at the same moment has
 * microseconds to come between, and code of our own no time at all. For the same reason the umask, which is the whole process's, may be changed:
 * `listen` binds before it returns.
 */
async function bind(server: Server, { path, mode }: UnixSocketOptions, dead: Identity | undefined): Promise<Identity> {
  if (dead) unlinkIfStill(path, dead);
  const listening = once(server, 'listening');
  const previous = process.umask(0o777 & ~mode);
  try {
    server.listen({ path });
  } finally {
    process.umask(previous);
  }
  const ours = identify(path);
  try {
    await listening;
  } catch (error) {
    throw errnoOf(error) === 'EADDRINUSE' ? justTaken(path) : error;
  }
  if (!ours) throw justTaken(path);
  return ours;
}

function unlinkIfStill(path: string, dead: Identity): void {
  const found = identify(path);
  if (!found) return;
  // Inode numbers are used again at once on some file systems; the time tells.
  if (!isSame(found, dead) || found.changed !== dead.changed) throw justTaken(path);
  unlinkSync(path);
}

function justTaken(path: string): CallError {
  return new CallError('FAILED_PRECONDITION', `${path} is already in use: another process has just taken it`);
}

/** Closing a server removes what is at its path, whatever that is. So a server whose file is not its own any more is not closed, only left idle. */
async function closeUnixSocket(server: Server, path: string, ours: Identity, log: Logger): Promise<void> {
  if (isForeign(path, ours)) {
    log.warn(`${path} is not the file that was made here any more: it is left alone`, { socket: path });
    server.unref();
  } else server.close();
}

function isForeign(path: string, ours: Identity): boolean {
  try {
    const found = identify(path);
    return found !== undefined && !isSame(found, ours);
  } catch {
    return true;
  }
}

/** The socket at the path that nobody answers on; undefined when nothing is there. Throws FAILED_PRECONDITION for anything else. */
async function findDeadSocket(path: string): Promise<Identity | undefined> {
  const found = identify(path);
  if (!found) return undefined;
  if (found.kind !== 'socket') {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${path} is a ${found.kind}, not a socket, and is left alone: remove it or choose another path`,
    );
  }
  if (await isAnswered(path)) {
    throw new CallError('FAILED_PRECONDITION', `${path} is already in use: another process answers on it`);
  }
  return found;
}

/** Whether a process listens on the socket. Throws what the kernel says when that cannot be told. */
async function isAnswered(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(knockLimitMs) });
    return true;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ECONNREFUSED' || errno === 'ENOENT') return false;
    // EAGAIN: its queue is full, so there is one.
    if (errno === 'EAGAIN' || errno === 'ABORT_ERR') return true;
    throw error;
  } finally {
    socket.on('error', () => {});
    socket.destroy();
  }
}

interface Identity {
  readonly device: bigint;
  readonly inode: bigint;
  /** Nanoseconds. */
  readonly changed: bigint;
  readonly kind: string;
  readonly permissions: number;
}

/**
 * What is at the path, links not followed. A bound socket keeps its inode number from being used again. Blocking on purpose: it is asked only at
 * start and stop, where nothing may come between the answer and what is done about it.
 */
function identify(path: string): Identity | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (!found) return undefined;
  const kind = found.isSocket()
    ? 'socket'
    : found.isSymbolicLink()
      ? 'symbolic link'
      : found.isDirectory()
        ? 'directory'
        : 'file';
  return {
    device: found.dev,
    inode: found.ino,
    changed: found.ctimeNs,
    kind,
    permissions: Number(found.mode & 0o777n),
  };
}

function isSame(a: Identity, b: Identity): boolean {
  return a.device === b.device && a.inode === b.inode;
}
