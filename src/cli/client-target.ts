/** The other end of a client's connection, from what people write. */
import { access } from 'node:fs/promises';
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

/** `unix:///path`, `unix:path`, `/path`, `tcp://host:port`, `host:port`. A server's "any address" becomes the loopback address. */
export function clientTarget(text: string): ClientTarget {
  const socket = /^(?:unix:(?:\/\/)?)?(\.{0,2}\/.*)$/.exec(text)?.[1] ?? /^unix:(?!\/)(.+)$/.exec(text)?.[1];
  if (socket !== undefined) return { address: `unix:${socket}`, shown: `unix://${socket}`, isLocal: true };
  const address = /^(?:tcp:\/\/|dns:\/{0,3})?(\[[\da-f:.%\w]+\]|[^:/[\]]+):(\d{1,5})$/i.exec(text);
  if (address === null)
    throw new UsageError(
      `"${text}" is not an endpoint`,
      'Such as unix:///run/switchboard/csi.sock or tcp://127.0.0.1:9000.',
    );
  const [, host = '', port] = address;
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '[::]' ? '[::1]' : host;
  return { address: `${reachable}:${port}`, shown: `tcp://${reachable}:${port}`, isLocal: false };
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
