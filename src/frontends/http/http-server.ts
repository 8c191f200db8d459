/**
 * A small HTTP/1.1 server for readers: GET and HEAD, no bodies, one request a connection. Who is slow to ask or slow to read is cut off, and a
 * crowd of such clients cannot keep others out.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '../../core/logger.ts';
import { createWaitingRoom } from '../listener/waiting-room.ts';

export interface Reply {
  readonly status: number;
  /** Content type. */
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface HttpServer {
  /** Takes over a connection from its first byte on. */
  accept(connection: Duplex): void;
  /** Ends all connections. */
  close(): void;
}

export interface HttpServerOptions {
  /** The reply to a path without its query. */
  readonly answer: (path: string) => Promise<Reply>;
  readonly log: Logger;
  /** Milliseconds from the first byte to the end of a connection. Default: 20 s. */
  readonly connectionLimitMs?: number | undefined;
}

/** Connections at once; when more come, the oldest ends. */
const places = 128;

const maxHeaderBytes = 8192;

/** What is told is for the one who asks, now, and for no other page. */
const alwaysSent = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  connection: 'close',
} as const;

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, answer, connectionLimitMs = 20_000 } = options;
  const open = createWaitingRoom({ limitMs: connectionLimitMs, places });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply = refusalOf(request) ?? (await answer(pathOf(request)).catch((error: unknown) => failed(error, log)));
    send(response, reply, request.method === 'HEAD');
  }

  const server = createServer({ maxHeaderSize: maxHeaderBytes }, (request, response) => {
    void serve(request, response);
  });
  // Asked before a body is sent, whose length would then be refused anyway.
  server.on('checkContinue', (request, response) => void serve(request, response));

  return {
    accept(connection) {
      open.enter(connection);
      connection.once('close', () => open.leave(connection));
      connection.on('error', () => {});
      server.emit('connection', connection as Socket);
    },
    close: () => open.clear(),
  };
}

function refusalOf({ method, headers }: IncomingMessage): Reply | undefined {
  if (method !== 'GET' && method !== 'HEAD') {
    return { ...plain(405, 'Only GET and HEAD: nothing can be changed here.'), headers: { allow: 'GET, HEAD' } };
  }
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  return hasBody ? plain(413, 'A request has no body here.') : undefined;
}

/** The path of `/path?query`, and of `http://host/path`. */
function pathOf({ url = '/' }: IncomingMessage): string {
  const [path = ''] = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/);
  return path === '' ? '/' : path;
}

function send(response: ServerResponse, { status, type, body, headers }: Reply, isHead: boolean): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...alwaysSent, 'content-type': type, 'content-length': bytes.length, ...headers });
  response.end(isHead ? undefined : bytes);
}

function failed(error: unknown, log: Logger): Reply {
  log.error('a page could not be made', { error });
  return plain(500, 'This page could not be made; the log says why.');
}

export function plain(status: number, text: string): Reply {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n` };
}
