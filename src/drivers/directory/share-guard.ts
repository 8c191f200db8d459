/**
 * Keeps a controller from working on anything but its share: in an empty folder of this machine, volumes would be made that no node can see, and in
 * the share of another server or connection, that one's volumes would be removed.
 */
import { hostname, networkInterfaces } from 'node:os';
import { posix } from 'node:path';
import type { CallContext } from '../../core/call.ts';
import { CallError, errnoOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { mayHang } from '../../node/file-system-kind.ts';
import type { Mount, MountTable } from '../../node/mount-table.ts';
import type { Files } from './files.ts';
import { claimPlace } from './share-claims.ts';
import type { ShareMount } from './share-mount.ts';
import { type ShareSight, type ShownShare, type Sight, shareText } from './share-sight.ts';

export interface ShareGuardOptions {
  /** `controllerBasePath`. */
  readonly base: string;
  /** `shareHost`. */
  readonly host: string;
  /** The share, for people. */
  readonly title: string;
  readonly sight: ShareSight;
  readonly files: Pick<Files, 'realPath' | 'kindOf'>;
  readonly readTable: () => Promise<MountTable>;
  /** Mounts it where it is not mounted, and keeps others from unmounting it (`controllerMount: auto`). */
  readonly mount?: (ShareMount & { hold(path: string): Promise<void> }) | undefined;
  readonly log: Logger;
}

export interface ShareGuard {
  /**
   * Throws FAILED_PRECONDITION unless the base path is on the share. Where somebody else mounts it, it may be known by another name than it is
   * mounted by; a local folder counts as the share when this machine is the server, or when volumes have been kept in it before.
   */
  ready(call: CallContext): Promise<void>;
  /** The share answers that this machine's view of it is stale: it has to be mounted anew. */
  stale(): void;
  /** What is taken for the share, if that is a mount of one. */
  shown(): ShownShare | undefined;
  close(): void;
}

/** What the last call found and used: a mount that is to stay, or a disk of this machine. */
interface Used {
  readonly on: string;
  readonly shown?: ShownShare | undefined;
}

export function createShareGuard(options: ShareGuardOptions): ShareGuard {
  const { base, host, title, sight, files, readTable, mount, log } = options;
  const claim = claimPlace(base, title);
  const told = new Set<string>();
  let used: Used | undefined;
  let isStale = false;

  async function look(call: CallContext): Promise<Sight> {
    const path = (await files.realPath(base).catch(explainStale)) ?? base;
    const found = await sight.at(call, await readTable(), path);
    if (found.mount?.fsType !== 'autofs') return found;
    // It is mounted by whoever walks into it.
    await files.kindOf(posix.join(base, 'v')).catch(explainStale);
    return await sight.at(call, await readTable(), path);
  }

  function explainStale(error: unknown): never {
    if (errnoOf(error) !== 'ESTALE') throw error;
    isStale = true;
    const message = `the mount of ${title} at ${base} is stale: mount it anew, or set "controllerMount: auto"`;
    throw new CallError('UNAVAILABLE', message, { cause: error });
  }

  /** Whether the share itself is mounted and can be used. */
  async function isUsable(call: CallContext): Promise<boolean> {
    try {
      return !isStale && (await isShare(call));
    } catch (error) {
      if (isStale) return false;
      throw error;
    }
  }

  async function isShare(call: CallContext): Promise<boolean> {
    const found = await look(call);
    if (found.is === 'share') used = usedOf(found);
    return found.is === 'share';
  }

  /** What somebody else has mounted at the base path, or has not. */
  async function requireShare(call: CallContext): Promise<void> {
    const found = await look(call);
    if (found.is === 'other') throw new CallError('FAILED_PRECONDITION', otherText(found.shown));
    const now = usedOf(found);
    if (found.is === 'none' && used !== undefined && used.on !== onDisk && used.on !== now.on)
      throw notMounted(' any more', found.mount);
    if (found.is !== 'share') {
      const doubt = await doubtOf(found);
      if (doubt !== undefined) {
        claim.requireAlone();
        if (!told.has(doubt)) log.warn(doubt);
        told.add(doubt);
      }
    }
    used = now;
  }

  /** Why it may not be the share, although it is taken for it. Undefined: it is. Throws when it is not. */
  async function doubtOf({ is, mount: covering, shown }: Sight): Promise<string | undefined> {
    const text = shown && shareText(shown);
    const saying = `say "controllerMountSource: ${text}" if that is right`;
    if (is === 'alias') return `${base} shows ${text}, which is taken for another name of ${title}; ${saying}`;
    if (isThisMachine(host)) return undefined;
    if ((await files.kindOf(posix.join(base, 'v'))) !== 'directory') {
      throw shown ? new CallError('FAILED_PRECONDITION', otherText(shown)) : notMounted('', covering);
    }
    if (shown) return `${base} shows ${text}, which is taken for ${title} because there are volumes in it; ${saying}`;
    const where = mayHang(covering) ? `a file system of type ${covering?.fsType}` : 'a disk of this machine';
    return (
      `${base} is on ${where}, not on ${title}: it is used because there are volumes in it; ` +
      `say ${rightFor(covering)} if that is right`
    );
  }

  const otherText = (shown: ShownShare['shown']) =>
    `${base} shows ${shareText(shown)}, not ${title}: mount that there; if both are the same folder, say ` +
    `"controllerMountSource: ${shareText(shown)}"`;

  function notMounted(since: string, covering: Mount | undefined): CallError {
    return new CallError(
      'FAILED_PRECONDITION',
      `${title} is not mounted at ${base}${since}: mount it there, or set "controllerMount: auto" ` +
        `to have it mounted, or ${rightFor(covering)} if that folder is what the server shares`,
    );
  }

  return {
    async ready(call) {
      claim.make();
      if (!mount) return await requireShare(call);
      await mount.ensure(call, () => isUsable(call));
      isStale = false;
      await mount.hold(base);
      if (!(await isShare(call))) {
        throw new CallError('ABORTED', `${title} was unmounted from ${base} just now; try again`);
      }
    },
    stale() {
      isStale = true;
    },
    shown: () => used?.shown,
    close: () => claim.giveUp(),
  };
}

/** The place of what is on no mount that could be missed. */
const onDisk = 'disk';

function usedOf({ is, mount, shown }: Sight): Used {
  if (mount && shown) return { on: 'share', shown: { mount, shown } };
  if (is === 'share') return { on: 'share' };
  return { on: mayHang(mount) ? nameOf(mount) : onDisk };
}

/** What says that a folder which is on no share is the share. What all of this machine is on is nobody's share. */
function rightFor(covering: Mount | undefined): string {
  const isOther = mayHang(covering) && covering?.mountPoint !== '/';
  return isOther ? `"controllerMountSource: ${covering?.source}"` : '"controllerMount: local"';
}

const nameOf = (mount: Mount | undefined) => `${mount?.fsType} ${mount?.source}`;

function isThisMachine(host: string): boolean {
  if (/^(localhost|127\.[\d.]+|\[?::1\]?)$/.test(host)) return true;
  const address = host.replace(/^\[|\]$/g, '').toLowerCase();
  const own = hostname().toLowerCase();
  if (address === own || address.startsWith(`${own}.`)) return true;
  return Object.values(networkInterfaces()).some((ones) => ones?.some((one) => one.address.toLowerCase() === address));
}
