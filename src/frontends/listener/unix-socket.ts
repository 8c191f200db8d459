/** The unix socket's file: made with its mode from the first moment, never in place of anything but a dead socket, removed only while it is ours. */
import { once } from 'node:events';
import { chmod, lstat, mkdir, unlink } from 'node:fs/promises';
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
  await removeDeadSocket(path, log);
  await bind(server, path, options.mode);
  const ours = await identify(path);
  if (!ours) throw new CallError('FAILED_PRECONDITION', `${path} was removed by somebody while it was opened`);
  // A default ACL on the directory takes the place of the umask.
  if (ours.permissions !== (options.mode & 0o777)) await chmod(path, options.mode & 0o777);
  return () => closeUnixSocket(server, path, ours, log);
}

/** The umask is the process's, but `listen` binds before it returns, so no other code of ours runs meanwhile. */
async function bind(server: Server, path: string, mode: number): Promise<void> {
  const listening = once(server, 'listening');
  const previous = process.umask(0o777 & ~mode);
  try {
    server.listen({ path });
  } finally {
    process.umask(previous);
  }
  await listening;
}

/** Closing a server removes what is at its path, whatever that is. So a server whose file is not its own any more is not closed, only left idle. */
async function closeUnixSocket(server: Server, path: string, ours: Identity, log: Logger): Promise<void> {
  const found = await identify(path).catch(() => undefined);
  if (found && !isSame(found, ours)) {
    log.warn(`${path} is not the file that was made here any more: it is left alone`, { socket: path });
    server.unref();
  } else server.close();
}

async function removeDeadSocket(path: string, log: Logger): Promise<void> {
  const found = await identify(path);
  if (!found) return;
  if (found.kind !== 'socket') {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${path} is a ${found.kind}, not a socket, and is left alone: remove it or choose another path`,
    );
  }
  if (await isAnswered(path)) {
    throw new CallError('FAILED_PRECONDITION', `${path} is already in use: another process answers on it`);
  }
  const again = await identify(path);
  if (!again) return;
  if (!isSame(again, found)) {
    throw new CallError('FAILED_PRECONDITION', `${path} is already in use: another process has just taken it`);
  }
  await unlink(path);
  log.verbose(`removed the dead socket ${path}`);
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
  readonly kind: string;
  readonly permissions: number;
}

/** What is at the path, links not followed. A bound socket keeps its inode number from being used again. */
async function identify(path: string): Promise<Identity | undefined> {
  try {
    const found = await lstat(path, { bigint: true });
    const kind = found.isSocket()
      ? 'socket'
      : found.isSymbolicLink()
        ? 'symbolic link'
        : found.isDirectory()
          ? 'directory'
          : 'file';
    return { device: found.dev, inode: found.ino, kind, permissions: Number(found.mode & 0o777n) };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function isSame(a: Identity, b: Identity): boolean {
  return a.device === b.device && a.inode === b.inode;
}
