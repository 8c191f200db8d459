/** Whether a path is on a connection's share, as far as the table of mounts tells: what is mounted there may be something else. */
import { isIPv6 } from 'node:net';
import { posix } from 'node:path';
import type { CallContext } from '../../core/call.ts';
import { otherNames } from '../../node/attachers/other-names.ts';
import { isWithin, type Mount, type MountTable } from '../../node/mount-table.ts';
import { addressOf, type ShareSource, shareSourceOf } from '../../node/share-source.ts';

/**
 * `share`: it is, without doubt. `alias`: the same path of a server by another name, which may be another server. `renamed`: a path of that server that
 * could be the same, such as one from the root of an NFSv4 server. `other`: another share. `none`: no share of this kind.
 */
export type Sight =
  | ({ readonly is: 'share' | 'alias' | 'renamed' | 'other' } & ShownShare)
  | { readonly is: 'share' | 'none'; readonly mount: Mount | undefined; readonly shown?: undefined };

export interface ShownShare {
  readonly mount: Mount;
  /** What of its server is seen at the path. */
  readonly shown: ShareSource;
}

export interface ShareSight {
  /** What is seen at a path, which has no symbolic links in it. */
  at(call: CallContext, table: MountTable, path: string): Promise<Sight>;
  /**
   * Where on this node a folder of the share, or something in it, is mounted. `below` is its path from the base path. `seen`: what is seen at the
   * base path, where that is taken for the share; others may have mounted it by that name as well.
   */
  mountPointsOf(table: MountTable, below: string, seen: ShownShare | undefined): readonly string[];
}

/** Milliseconds that the addresses of the server are remembered. */
const rememberedMs = 60_000;

/** `source`: what the table of mounts calls the share besides, by the configuration; for what is no share, its source as it stands there. */
export function createShareSight(share: ShareSource, fsType: string, source?: string): ShareSight {
  const also = source === undefined ? undefined : shareSourceOf({ fsType, source });
  let names: ReadonlySet<string> = new Set();
  let askedAt: number | undefined;

  async function isServer(call: CallContext, table: MountTable, mount: Mount, shown: ShareSource): Promise<boolean> {
    if (shown.host === share.host) return true;
    const address = addressOf(mount.superOptions);
    if (address === '' || address === share.host) return address !== '';
    if (askedAt === undefined || performance.now() - askedAt > rememberedMs) {
      names = share.family === 'nfs' ? await otherNames(call, table, share.host) : names;
      askedAt = performance.now();
    }
    return names.has(address);
  }

  return {
    async at(call, table, path) {
      const mount = table.covering(path);
      const [shown, ...or] = mount ? sharesAt(mount, path) : [];
      if (!mount || !shown) return { is: mount && source === mount.source ? 'share' : 'none', mount };
      if (shown.family !== share.family) return { is: 'none', mount };
      if (also && also.host === shown.host && isSamePath(also, shown)) return { is: 'share', mount, shown };
      const isSame = isSamePath(share, shown);
      const isLike = isEndOf(share.path, shown.path) || isEndOf(shown.path, share.path);
      if (!isSame && !isLike && !or.some((one) => isSamePath(share, one))) return { is: 'other', mount, shown };
      if (await isServer(call, table, mount, shown)) return { is: isSame ? 'share' : 'renamed', mount, shown };
      return { is: isSame ? 'alias' : 'other', mount, shown };
    },
    mountPointsOf(table, below, seen) {
      const addresses = [...names, seen ? addressOf(seen.mount.superOptions) : ''].filter(Boolean);
      const hosts = new Set([share.host, ...addresses, ...(seen ? [seen.shown.host] : [])]);
      const paths = [share, seen?.shown ?? share].map((one) => spelled({ ...one, path: posix.join(one.path, below) }));
      return table.mounts
        .filter((mount) =>
          sharesAt(mount, mount.mountPoint).some((shown) => {
            if (shown.family !== share.family) return false;
            if (!hosts.has(shown.host) && !hosts.has(addressOf(mount.superOptions))) return false;
            return paths.some((path) => isWithin(spelled(shown), path));
          }),
        )
        .map((mount) => mount.mountPoint);
    },
  };
}

/** For people and for `controllerMountSource`: as the table of mounts has it. */
export function shareText({ family, host, path }: ShareSource): string {
  if (family === 'smb') return `//${host}${path}`;
  return `${isIPv6(host) ? `[${host}]` : host}:${path}`;
}

/** What of its server a mount shows at a path at or below its mount point; what it could be besides. None: it is of no server. */
function sharesAt(mount: Mount, path: string): readonly ShareSource[] {
  const found = shareSourceOf(mount);
  if (!found) return [];
  const below = posix.relative(mount.mountPoint, path);
  return pathsShown(mount, found).map((shown) => ({ ...found, path: posix.join(shown, below) }));
}

/**
 * The path on the server that is seen at the mount point. A folder of a mount of NFS, mounted elsewhere, has that folder in its source; others tell
 * of it beside that. Some kernels show a folder of an SMB share as a folder of a mount of the whole share, and what they give as the source is
 * that of the share's first mount: there only the name of the share counts.
 */
function pathsShown({ root }: Mount, { family, path }: ShareSource): readonly string[] {
  if (root === '/') return [path];
  if (family !== 'smb') return [posix.join(path, root)];
  const [, name = '', ...folders] = path.split('/');
  const inShare = `/${name}${root}`;
  return folders.length === 0 || isWithin(root, `/${folders.join('/')}`)
    ? [inShare]
    : [inShare, posix.join(path, root)];
}

function isSamePath(one: ShareSource, other: ShareSource): boolean {
  return spelled(one) === spelled(other);
}

/** The names of SMB shares are the same in small letters and capitals; those of folders need not be. */
function spelled({ family, path }: ShareSource): string {
  if (family !== 'smb') return path;
  const [, name = '', ...folders] = path.split('/');
  return `/${[name.toLowerCase(), ...folders].join('/')}`;
}

function isEndOf(path: string, longer: string): boolean {
  return path === '/' || longer.endsWith(path);
}
