/**
 * Keeps a controller from working in an empty folder of this machine when it should be working on a share: where the share is not mounted,
 * volumes would be made that no node can see, and removed ones would live on.
 */
import { hostname, networkInterfaces } from 'node:os';
import { posix } from 'node:path';
import type { CallContext } from '../../core/call.ts';
import { CallError, errnoOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { mayHang } from '../../node/file-system-kind.ts';
import type { MountTable } from '../../node/mount-table.ts';
import type { Files } from './files.ts';
import type { ShareMount } from './share-mount.ts';

export interface ShareGuardOptions {
  /** `controllerBasePath`. */
  readonly base: string;
  /** `shareHost`. */
  readonly host: string;
  /** The share, for people. */
  readonly title: string;
  readonly files: Files;
  readonly readTable: () => Promise<MountTable>;
  /** Mounts it where it is not mounted, and keeps others from unmounting it (`controllerMount: auto`). */
  readonly mount?: (ShareMount & { hold(path: string): Promise<void> }) | undefined;
  readonly log: Logger;
}

export interface ShareGuard {
  /**
   * Throws FAILED_PRECONDITION unless the base path is on the share. A local folder counts as the share when this machine is the server, or
   * when volumes have been kept in it before.
   */
  ready(call: CallContext): Promise<void>;
  /** The share answers that this machine's view of it is stale: it has to be mounted anew. */
  stale(): void;
}

export function createShareGuard(options: ShareGuardOptions): ShareGuard {
  const { base, host, title, files, readTable, mount, log } = options;
  let wasMounted = false;
  let toldLocal = false;
  let isStale = false;

  /** Whether the base path is on a file system of the network. Throws UNAVAILABLE when it is, but can be used no more. */
  async function isMounted(): Promise<boolean> {
    const path = (await files.realPath(base).catch(explainStale)) ?? base;
    const found = mayHang((await readTable()).covering(path));
    wasMounted ||= found;
    return found;
  }

  function explainStale(error: unknown): never {
    if (errnoOf(error) !== 'ESTALE') throw error;
    isStale = true;
    const message = `the mount of ${title} at ${base} is stale: mount it anew, or set "controllerMount: auto"`;
    throw new CallError('UNAVAILABLE', message, { cause: error });
  }

  /** Whether it is mounted and can be used. */
  async function isUsable(): Promise<boolean> {
    try {
      return !isStale && (await isMounted());
    } catch (error) {
      if (isStale) return false;
      throw error;
    }
  }

  async function requireLocalShare(): Promise<void> {
    if (!wasMounted) {
      if (isThisMachine(host)) return;
      if ((await files.kindOf(posix.join(base, 'v'))) === 'directory') {
        if (!toldLocal) {
          const message = `${base} is on a disk of this machine, not on ${title}: it is used because there are volumes in it`;
          log.warn(`${message}; say "controllerMount: local" if that is right`);
        }
        toldLocal = true;
        return;
      }
    }
    throw new CallError(
      'FAILED_PRECONDITION',
      `${title} is not mounted at ${base}${wasMounted ? ' any more' : ''}: mount it there, or set "controllerMount: auto" ` +
        'to have it mounted, or "controllerMount: local" if that folder is what the server shares',
    );
  }

  return {
    async ready(call) {
      if (mount) {
        await mount.ensure(call, isUsable);
        isStale = false;
        await mount.hold(base);
        if (!(await isMounted()))
          throw new CallError('ABORTED', `${title} was unmounted from ${base} just now; try again`);
      } else if (!(await isMounted())) await requireLocalShare();
    },
    stale() {
      isStale = true;
    },
  };
}

function isThisMachine(host: string): boolean {
  if (/^(localhost|127\.[\d.]+|\[?::1\]?)$/.test(host)) return true;
  const address = host.replace(/^\[|\]$/g, '').toLowerCase();
  const own = hostname().toLowerCase();
  if (address === own || address.startsWith(`${own}.`)) return true;
  return Object.values(networkInterfaces()).some((ones) => ones?.some((one) => one.address.toLowerCase() === address));
}
