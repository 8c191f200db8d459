/** A connection to a running plugin, of this kind or any other that speaks CSI. */
import { readFile } from 'node:fs/promises';
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { reasonOf } from '../core/call.ts';
import { CallError, oneLine, type StatusCode, statusCodes } from '../core/errors.ts';
import type { Init } from '../generated/csi.js';
import type { Method } from '../generated/services.js';
import type { ClientTarget } from './client-target.ts';

export interface CsiClient {
  /** Rejects with CallError only: the plugin's own code and text, or UNAVAILABLE when there is no plugin. */
  call<Request, Response>(
    method: Method<Request, Response>,
    request: Init<Request>,
    options: CallOptions,
  ): Promise<Response>;
  close(): void;
}

export interface CallOptions {
  /** Cancels the call, at the plugin too. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** Certificate files; with any of them the connection is encrypted. */
export interface TlsOptions {
  readonly tlsCa?: string | undefined;
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
}

/** Connects with the first call. Rejects for certificate files that cannot be read. */
export async function connect(target: ClientTarget, tls: TlsOptions = {}): Promise<CsiClient> {
  const client = new Client(target.address, await credentialsFrom(tls), {
    // Servers refuse the path of a socket as an authority.
    ...(target.isLocal && { 'grpc.default_authority': 'localhost' }),
    'grpc.max_receive_message_length': -1,
    'grpc.enable_retries': 0,
  });
  return {
    call: (method, request, { signal, timeoutMs }) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(reasonOf(signal));
        const cancel = () => call.cancel();
        const call = client.makeUnaryRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          request,
          new Metadata(),
          { deadline: Date.now() + timeoutMs },
          (error, response) => {
            signal.removeEventListener('abort', cancel);
            if (error) reject(signal.aborted ? reasonOf(signal) : asFailure(error, target, timeoutMs));
            else if (response === undefined) reject(new CallError('INTERNAL', 'the answer was empty'));
            else resolve(response);
          },
        );
        signal.addEventListener('abort', cancel, { once: true });
      }),
    close: () => client.close(),
  };
}

async function credentialsFrom({ tlsCa, tlsKey, tlsCert }: TlsOptions): Promise<ChannelCredentials> {
  if ((tlsCa ?? tlsKey ?? tlsCert) === undefined) return credentials.createInsecure();
  const read = (path: string | undefined) => (path === undefined ? null : readFile(path));
  const [ca, key, cert] = await Promise.all([read(tlsCa), read(tlsKey), read(tlsCert)]);
  return credentials.createSsl(ca, key, cert);
}

function asFailure(error: ServiceError, target: ClientTarget, timeoutMs: number): CallError {
  const names = Object.keys(statusCodes) as StatusCode[];
  const code = names.find((name) => statusCodes[name] === error.code) ?? 'UNKNOWN';
  // Both texts are grpc-js's own, not the plugin's.
  if (code === 'UNAVAILABLE' && /^No connection established|^Name resolution failed/.test(error.details)) {
    return new CallError(code, `nobody answers on ${target.shown}: ${connectionTrouble(error.details)}`);
  }
  if (code === 'DEADLINE_EXCEEDED' && error.details.startsWith('Deadline exceeded')) {
    return new CallError(code, `no answer within ${timeoutMs / 1000} s; the same command again waits for the result`);
  }
  return new CallError(code, error.details);
}

function connectionTrouble(details: string): string {
  if (details.includes('ENOENT')) return 'there is no such socket. Is the plugin running?';
  if (details.includes('ECONNREFUSED')) return 'the connection was refused. Is the plugin running?';
  if (details.includes('EACCES')) return 'permission denied. Run this as the user that runs the plugin.';
  const reason = oneLine(
    details
      .replace(/^.*Last error: /s, '')
      .replace(/\s*\(\d{4}-\d\d-\d\dT.*$/s, '')
      .replace(/\.?\s*Resolution note:.*$/s, '')
      .replace(/^.*:SSL routines:[^:]*:([^:]+).*$/s, 'SSL: $1'),
    200,
  );
  const tls = /Failed to connect|SSL|certificate/i.test(reason);
  return tls ? `${reason}. Does it want TLS, with other files? See --tls-ca, --tls-cert and --tls-key.` : reason;
}
