/** Where to listen, as people write it: a unix socket, a TCP address, or sockets handed over by systemd. */
import { isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { CallError } from '../../core/errors.ts';

export interface UnixEndpoint {
  readonly kind: 'unix';
  /** Absolute. */
  readonly path: string;
  /** As it was written, for messages. */
  readonly text: string;
}

export interface TcpEndpoint {
  readonly kind: 'tcp';
  /** An address or a name, without brackets; empty: every address of the host. */
  readonly host: string;
  /** Zero: any free port. */
  readonly port: number;
  readonly text: string;
}

export interface InheritedEndpoint {
  readonly kind: 'inherited';
  /** Only sockets of this `FileDescriptorName=`; undefined: all that were handed over. */
  readonly name: string | undefined;
  readonly text: string;
}

export type Endpoint = UnixEndpoint | TcpEndpoint | InheritedEndpoint;

/** `sun_path` is 108 bytes with the NUL that ends it: unix(7). */
const unixPathLimit = 107;

const forms = 'write unix:///path, /path, tcp://host:port, host:port, [::1]:port, :port or systemd';

/**
 * `unix:///path`, `unix:/path`, `unix://path`, `/path`, `tcp://host:port`, `host:port`, `[::1]:port`, `:port`, `systemd` (every inherited socket) and
 * `systemd:name` (those of that name). Relative paths begin at the working directory. Throws INVALID_ARGUMENT that names the text.
 */
export function parseEndpoint(text: string): Endpoint {
  const written = text.trim();
  const [, name] = /^systemd(?::(.+))?$/.exec(written) ?? [];
  if (written === 'systemd' || name !== undefined) return { kind: 'inherited', name, text: written };
  const [, path] = /^(?:unix:(?:\/\/)?(?=.)|(?=\/))(.*)$/s.exec(written) ?? [];
  if (path !== undefined) return unixEndpoint(path, written);
  const [, address] = /^(?:tcp:\/\/)?([^/]*)$/.exec(written) ?? [];
  if (address === undefined || address === '') throw notAnEndpoint(written, forms);
  return tcpEndpoint(address, written);
}

function unixEndpoint(path: string, text: string): UnixEndpoint {
  if (path.includes('\0')) throw notAnEndpoint(text, 'a path has no NUL in it');
  if (path.endsWith('/')) throw notAnEndpoint(text, 'it names a folder; name the socket file');
  const absolute = resolve(path);
  const bytes = Buffer.byteLength(absolute);
  if (bytes > unixPathLimit) {
    throw notAnEndpoint(text, `the path has ${bytes} bytes, and the kernel allows a unix socket ${unixPathLimit}`);
  }
  return { kind: 'unix', path: absolute, text };
}

function tcpEndpoint(address: string, text: string): TcpEndpoint {
  const match = /^(?:\[([^\]]*)\]|([A-Za-z0-9._-]*)|\*):(\d{1,5})$/.exec(address);
  if (!match) throw notAnEndpoint(text, forms);
  const [, bracketed, plain, digits] = match;
  if (bracketed !== undefined && !isIPv6(bracketed)) throw notAnEndpoint(text, `"${bracketed}" is not an IPv6 address`);
  const port = Number(digits);
  if (port > 65_535) throw notAnEndpoint(text, 'a port is at most 65535');
  return { kind: 'tcp', host: bracketed ?? plain ?? '', port, text };
}

function notAnEndpoint(text: string, why: string): CallError {
  return new CallError('INVALID_ARGUMENT', `"${text}" is not an endpoint: ${why}`);
}
