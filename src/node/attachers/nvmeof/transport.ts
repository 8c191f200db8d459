import { isIP, isIPv6 } from 'node:net';
import { CallError } from '../../../core/errors.ts';
import { type ConnectOptions, parseConnectOptions } from './connect-options.ts';

/** One way to a subsystem: `tcp://nas1:4420?ctrl-loss-tmo=60`. */
export interface Transport {
  readonly type: 'tcp' | 'rdma' | 'fc';
  /** An address or a host name, without brackets; for FC `nn-0x…:pn-0x…`. */
  readonly host: string;
  /** Undefined for FC, which has none. */
  readonly port?: string | undefined;
  readonly options: ConnectOptions;
  /** For people, without the arguments. */
  readonly title: string;
}

/** The port that IANA gives to NVMe over Fabrics. */
const defaultPort = '4420';

const hostName = /^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_.])?$/;
const fcAddress = /^nn-(0x)?[0-9a-f]{16}:pn-(0x)?[0-9a-f]{16}$/i;

/** Throws INVALID_ARGUMENT, with the URI but never with its arguments, which may be secret. */
export function parseTransport(uri: string): Transport {
  const [, scheme = '', path = '', query = ''] = /^([a-z]+):\/\/([^?]*)(?:\?(.*))?$/is.exec(uri) ?? [];
  const type = scheme.toLowerCase();
  const place = path.replace(/\/+$/, '');
  const shown = JSON.stringify(uri.replace(/\?.*$/s, '').slice(0, 200));
  if (type !== 'tcp' && type !== 'rdma' && type !== 'fc') {
    throw new CallError('INVALID_ARGUMENT', `transport ${shown} is none of tcp://…, rdma://… and fc://…`);
  }
  if (type === 'fc') return parseFibreChannel(place, query, shown);
  const { host, port = defaultPort } = splitHost(place) ?? {};
  if (host === undefined || Number(port) < 1 || Number(port) > 65535) {
    throw new CallError('INVALID_ARGUMENT', `transport ${shown} does not name a host and a port`);
  }
  const title = `${type}://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return { type, host, port: String(Number(port)), title, options: parseConnectOptions(query, title) };
}

function parseFibreChannel(host: string, query: string, shown: string): Transport {
  if (!fcAddress.test(host)) {
    throw new CallError('INVALID_ARGUMENT', `transport ${shown} is not fc://nn-0x<16 digits>:pn-0x<16 digits>`);
  }
  const title = `fc://${host}`;
  const options = parseConnectOptions(query, title);
  const from = options.get('host_traddr');
  if (typeof from === 'string' && fcAddress.test(from)) return { type: 'fc', host, title, options };
  throw new CallError('INVALID_ARGUMENT', `${title} needs host-traddr=nn-0x…:pn-0x…, the port of this node`);
}

/** `host`, `host:port`, `address`, `[IPv6]`, `[IPv6]:port`; an IPv6 address may do without brackets when there is no port. */
function splitHost(place: string): { host: string; port?: string } | undefined {
  const text = place.replaceAll('%25', '%');
  if (isIPv6(text)) return { host: text };
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain ?? '';
  const isProper = bracketed !== undefined ? isIPv6(bracketed) : isIP(host) !== 0 || hostName.test(host);
  if (!isProper || !/^[^,\s]+$/.test(host)) return undefined;
  return port === undefined ? { host } : { host, port };
}
