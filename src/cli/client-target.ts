/** The other end of a client's connection, from what people write. */
import { access } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { CallError } from '../core/errors.ts';
import { type Endpoint, parseEndpoint } from '../frontends/listener/endpoints.ts';
import type { Shell } from './shell.ts';
import { type Account, stateSocketPath, systemSocketPath } from './state-directory.ts';
import { UsageError } from './usage-error.ts';

export interface ClientTarget {
  /** As grpc-js wants it. */
  readonly address: string;
  /** As people know it. */
  readonly shown: string;
  /** It is a unix socket, so the plugin's file system is probably this one. */
  readonly isLocal: boolean;
}

/** An endpoint as servers take it. A server's "any address" becomes the loopback address. Throws UsageError. */
export function clientTarget(text: string): ClientTarget {
  const endpoint = parse(text);
  if (endpoint.kind === 'unix') {
    return { address: `unix:${endpoint.path}`, shown: `unix://${endpoint.path}`, isLocal: true };
  }
  if (endpoint.kind !== 'tcp') throw new UsageError(`"${text}" cannot be connected to`, example);
  const { host, port } = endpoint;
  const reachable = anyAddress[host] ?? host;
  const address = `${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
  return { address, shown: `tcp://${address}`, isLocal: false };
}

const anyAddress: Readonly<Record<string, string>> = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '::': '::1' };

const example = 'Such as unix:///run/switchboard/csi.sock or tcp://127.0.0.1:9000.';

function parse(text: string): Endpoint {
  try {
    return parseEndpoint(text);
  } catch (error) {
    if (error instanceof CallError) throw new UsageError(error.message, example);
    throw error;
  }
}

/** The endpoint to talk to when no flag names one: the variables that servers listen by, then the sockets they choose by themselves. */
export async function defaultEndpoint(env: Shell['env'], account: Account): Promise<string> {
  const named = env.SWITCHBOARD_ENDPOINT?.split(',')[0]?.trim() || env.CSI_ENDPOINT;
  if (named) return named;
  const own = stateSocketPath(env, account);
  for (const path of [own, systemSocketPath]) {
    if (await exists(path)) return `unix://${path}`;
  }
  return `unix://${own}`;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
