/** Listening on TCP, and the rule of who may be reached there without encryption. */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { isIPv4, type Server } from 'node:net';
import { CallError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { TcpEndpoint } from './endpoints.ts';

export interface PlaintextPolicy {
  /** TLS is set up: then all of TCP is encrypted. */
  readonly encrypted: boolean;
  readonly allowInsecureTcp: boolean;
  readonly log: Logger;
  /** Default: {@link commandingWords}. */
  readonly words?: PlaintextWords | undefined;
}

/** What is said of an address that other hosts reach without encryption; the address goes before. */
export interface PlaintextWords {
  readonly refusal: string;
  readonly warning: string;
}

/** For a door behind which volumes are made and deleted. */
const commandingWords: PlaintextWords = {
  refusal:
    'is reachable from other hosts and would be unencrypted: give --server-tls-cert, --server-tls-key and --server-tls-client-ca, ' +
    'use a loopback address, or insist with --allow-insecure-tcp',
  warning:
    'accepts unencrypted connections from anybody who can reach it, and each may delete volumes (--allow-insecure-tcp)',
};

/**
 * Starts `server` at the endpoint's address; a name is looked up once, and its first address taken. Throws FAILED_PRECONDITION when connections would
 * be neither local nor encrypted nor explicitly allowed, and system errors as they come.
 */
export async function openTcp(server: Server, endpoint: TcpEndpoint, policy: PlaintextPolicy): Promise<void> {
  const addresses = endpoint.host === '' ? [] : await lookup(endpoint.host, { all: true });
  // A name is local when all that it stands for is.
  const local = addresses.length > 0 && addresses.every(({ address }) => isLoopback(address));
  refuseOpenPlaintext(local, endpoint.text, policy);
  const [first] = addresses;
  const listening = once(server, 'listening');
  server.listen(first ? { host: first.address, port: endpoint.port } : { port: endpoint.port });
  await listening;
}

/** Plaintext needs a host of one's own or a clear word. */
export function refuseOpenPlaintext(local: boolean, where: string, policy: PlaintextPolicy): void {
  if (policy.encrypted || local) return;
  const { refusal, warning } = policy.words ?? commandingWords;
  if (!policy.allowInsecureTcp) throw new CallError('FAILED_PRECONDITION', `${where} ${refusal}`);
  policy.log.warn(`INSECURE: ${where} ${warning}`);
}

/** 127.0.0.0/8 and ::1, also when an IPv4 address is written as an IPv6 one. */
export function isLoopback(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:(?=[\d.]+$)/, '');
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
