/** TLS with client certificates in front of a TCP listener. Certificate files that change on disk hold from the next connection on. */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer, type TLSSocket } from 'node:tls';
import { oneLine } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { isSameTls, readTlsFiles, type TlsFiles } from './tls-files.ts';

/** How long a new connection waits for the files to be looked at: they may be on a file system that hangs. */
const refreshLimitMs = 1_000;
const handshakeLimitMs = 10_000;

export interface TlsFront {
  /** Takes a fresh, paused connection. */
  accept(raw: Socket): void;
}

/**
 * `onSecure` gets every connection whose client showed a certificate of the client CA, with the socket below it; every other is ended. Throws as
 * {@link readTlsFiles} does.
 */
export async function createTlsFront(
  files: TlsFiles,
  log: Logger,
  onSecure: (secure: TLSSocket, raw: Socket) => void,
): Promise<TlsFront> {
  let current = await readTlsFiles(files);
  let complaint = '';
  let refreshing: Promise<void> | undefined;
  const handshakes = new Map<string, Socket>();
  const server = createServer({
    ...current,
    minVersion: 'TLSv1.2',
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: handshakeLimitMs,
    allowHalfOpen: true,
  });
  server.on('secureConnection', (secure) => {
    const raw = handshakes.get(peerOf(secure));
    handshakes.delete(peerOf(secure));
    secure.on('error', () => {});
    if (raw) onSecure(secure, raw);
    else secure.destroy();
  });
  server.on('tlsClientError', (error, secure) => {
    log.debug('a TLS handshake failed', { reason: oneLine(error.message), client: secure.remoteAddress });
    secure.destroy();
  });

  async function refresh(): Promise<void> {
    try {
      const found = await readTlsFiles(files);
      complaint = '';
      if (isSameTls(found, current)) return;
      server.setSecureContext({ ...found, minVersion: 'TLSv1.2' });
      current = found;
      log.info('the TLS files have changed and are used from now on', { cert: files.cert });
    } catch (error) {
      const message = oneLine(error instanceof Error ? error.message : String(error));
      if (message !== complaint) log.warn(`the changed TLS files cannot be used, the earlier ones stay: ${message}`);
      complaint = message;
    } finally {
      refreshing = undefined;
    }
  }

  return {
    async accept(raw) {
      const peer = peerOf(raw);
      handshakes.set(peer, raw);
      raw.once('close', () => {
        if (handshakes.get(peer) === raw) handshakes.delete(peer);
      });
      refreshing ??= refresh();
      await Promise.race([refreshing, delay(refreshLimitMs, undefined, { ref: false })]);
      try {
        if (!raw.destroyed) server.emit('connection', raw);
      } catch (error) {
        log.debug('a connection ended before its TLS handshake', { error });
        raw.destroy();
      }
    },
  };
}

/** Tells open connections apart: a TLS socket does not say on which socket it was made. */
function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
