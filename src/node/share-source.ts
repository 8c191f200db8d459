/** Shares as the mount table names them, and what tells one share of one server from another. */
import { isIPv6, SocketAddress } from 'node:net';
import type { Mount } from './mount-table.ts';

export type ShareFamily = 'nfs' | 'smb' | 'lustre';

export interface ShareSource {
  readonly family: ShareFamily;
  /** In one spelling: small letters, an IPv6 address without brackets and in its shortest form. */
  readonly host: string;
  /** Begins with a slash, and has no superfluous ones. */
  readonly path: string;
}

const families: Readonly<Record<string, ShareFamily>> = {
  nfs: 'nfs',
  nfs4: 'nfs',
  cifs: 'smb',
  smb3: 'smb',
  lustre: 'lustre',
};

/** Undefined for what is no share of a server. */
export function familyOf(fsType: string): ShareFamily | undefined {
  return Object.hasOwn(families, fsType) ? families[fsType] : undefined;
}

/** What a mount of a share is of. Undefined for other mounts. */
export function shareSourceOf({ fsType, source }: Pick<Mount, 'fsType' | 'source'>): ShareSource | undefined {
  const family = familyOf(fsType);
  const parts = family && patterns[family].exec(source);
  if (!family || !parts) return undefined;
  const path = parts[2] ?? '';
  return {
    family,
    host: hostKey(parts[1] ?? ''),
    path: pathKey(family === 'smb' ? path.replaceAll('\\', '/') : path),
  };
}

const patterns: Readonly<Record<ShareFamily, RegExp>> = {
  nfs: /^(\[[^\]]*\]|[^:]*):(.*)$/s,
  smb: /^[/\\]{2}([^/\\]*)[/\\](.*)$/s,
  // The servers' network ids, themselves separated by colons.
  lustre: /^(.*?):(\/.*)$/s,
};

/** One spelling for all that mean the same host; names are not looked up. */
export function hostKey(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (!isIPv6(bare)) return bare;
  const [address = '', zone] = bare.split('%');
  const short = new SocketAddress({ address, family: 'ipv6' }).address;
  return zone === undefined ? short : `${short}%${zone}`;
}

/** One spelling for all that mean the same path. */
export function pathKey(path: string): string {
  return `/${path.split('/').filter(Boolean).join('/')}`;
}

/** The address of the server of a mount of NFS or SMB, in the spelling of {@link hostKey}; empty when the options do not tell. */
export function addressOf(superOptions: readonly string[]): string {
  return hostKey(superOptions.find((option) => option.startsWith('addr='))?.slice('addr='.length) ?? '');
}

/**
 * What the server of a mount is remembered by. A server of another protocol at the same address, or at another port, is another one. Undefined
 * for mounts that no server is known of.
 */
export function serverOf(mount: Pick<Mount, 'fsType' | 'source' | 'superOptions'>): string | undefined {
  const share = shareSourceOf(mount);
  return share && serverKey(share, mount.superOptions);
}

/** The same for any mount: what may hang has a server, even if it is a process of this machine. */
export function serverNameOf(mount: Pick<Mount, 'fsType' | 'source' | 'superOptions'>): string {
  return serverOf(mount) ?? `${mount.fsType} ${mount.source}`;
}

/** The same before it is mounted. */
export function serverKey({ family, host }: Pick<ShareSource, 'family' | 'host'>, options: readonly string[]): string {
  const port = options.findLast((option) => option.startsWith('port='))?.slice('port='.length);
  const usual = port === undefined || family !== 'nfs' || port === '2049' || port === '0';
  return `${family} ${host}${usual ? '' : ` port ${port}`}`;
}
