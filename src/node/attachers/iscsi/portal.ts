import { isIPv6 } from 'node:net';
import { CallError } from '../../../core/errors.ts';

/** Where a target listens. */
export interface Portal {
  /** A host name or an address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

/** RFC 7143, 13.8: "If the TCP port is not specified, it is assumed to be 3260." */
const defaultPort = 3260;

/** Reads `10.0.0.1`, `nas1:3261`, `[fd00::1]:3260`, `fd00::1`. Throws INVALID_ARGUMENT. */
export function parsePortal(text: string): Portal {
  const plain = text.trim();
  const [, bracketed, afterBracket] = /^\[([^\]]*)\](?::(\d+))?$/.exec(plain) ?? [];
  if (bracketed !== undefined) return checked(text, bracketed, afterBracket);
  if (isIPv6(plain)) return checked(text, plain, undefined);
  const [, host = '', port] = /^([^:]*)(?::(\d+))?$/.exec(plain) ?? [];
  return checked(text, host, port);
}

function checked(text: string, host: string, port: string | undefined): Portal {
  const number = port === undefined ? defaultPort : Number(port);
  const isName = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,253}[A-Za-z0-9])?\.?$/.test(host);
  if ((isName || isIPv6(host)) && number > 0 && number < 65536) return { host: host.toLowerCase(), port: number };
  throw new CallError('INVALID_ARGUMENT', `${JSON.stringify(text.slice(0, 100))} is no iSCSI portal: write host:port`);
}

/** As iscsiadm wants it, and people read it. */
export function portalText({ host, port }: Portal): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isSamePortal(one: Portal, other: Portal): boolean {
  return one.port === other.port && one.host.toLowerCase() === other.host.toLowerCase();
}
