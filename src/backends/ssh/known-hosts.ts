/** The `known_hosts` file of OpenSSH: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". */
import { createHmac } from 'node:crypto';

export interface KnownHosts {
  /** Types of the keys that are known of the host, such as `ssh-ed25519`. */
  keyTypes(host: string, port: number): readonly string[];
  /** `key` is the public key as the server sends it (RFC 4253, 6.6). */
  check(host: string, port: number, key: Buffer): 'known' | 'changed' | 'unknown' | 'revoked';
}

interface Entry {
  readonly marker: string | undefined;
  readonly hosts: string;
  readonly type: string;
  readonly key: string;
}

/** Reads the text of such a file. Lines that are no entries, and certificate authorities, are passed over. */
export function parseKnownHosts(text: string): KnownHosts {
  const entries = text.split('\n').flatMap((line) => parseLine(line) ?? []);
  const of = (host: string, port: number) => entries.filter((entry) => isFor(entry.hosts, nameOf(host, port)));
  return {
    keyTypes: (host, port) => [...new Set(of(host, port).flatMap((entry) => (entry.marker ? [] : entry.type)))],
    check(host, port, key) {
      const encoded = key.toString('base64');
      const known = of(host, port);
      if (known.some((entry) => entry.marker === '@revoked' && entry.key === encoded)) return 'revoked';
      const trusted = known.filter((entry) => entry.marker === undefined);
      if (trusted.some((entry) => entry.key === encoded)) return 'known';
      return trusted.length > 0 ? 'changed' : 'unknown';
    },
  };
}

function parseLine(line: string): Entry | undefined {
  const words = line.trim().split(/\s+/);
  if (line.trim() === '' || line.trimStart().startsWith('#')) return undefined;
  const marker = words[0]?.startsWith('@') ? words.shift() : undefined;
  const [hosts, type, key] = words;
  return hosts && type && key ? { marker, hosts, type, key } : undefined;
}

/** Port 22 is not written. */
function nameOf(host: string, port: number): string {
  const name = host.toLowerCase();
  return port === 22 ? name : `[${name}]:${port}`;
}

function isFor(hosts: string, name: string): boolean {
  if (hosts.startsWith('|1|')) {
    const [, , salt = '', hash] = hosts.split('|');
    return createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64') === hash;
  }
  const patterns = hosts.toLowerCase().split(',');
  const refused = patterns.some((pattern) => pattern.startsWith('!') && fits(pattern.slice(1), name));
  return !refused && patterns.some((pattern) => fits(pattern, name));
}

function fits(pattern: string, name: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`).test(name);
}
