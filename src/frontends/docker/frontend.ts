/** The door for Docker: the volume plugin protocol, HTTP/1.1 with JSON, on connections that are handed over one by one. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Driver } from '../../core/driver.ts';
import { asCallError, CallError } from '../../core/errors.ts';
import { singleCatalog } from '../../core/find-volumes.ts';
import type { Logger } from '../../core/logger.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import { redacted } from '../../pipeline/redact.ts';
import { type DockerEndpoint, dockerEndpoints } from './endpoints.ts';
import { type DockerMessage, parseMessage } from './messages.ts';
import { openMountRecords } from './mount-records.ts';
import type { Options } from './options.ts';
import { secretFiles } from './secret-files.ts';
import { createVolumeDriver } from './volume-driver.ts';
import { openVolumeIndex } from './volume-index.ts';
import type { Scope } from './workshop.ts';

export interface DockerSettings {
  /** Where it is remembered what is mounted for whom. */
  readonly stateFolder: string;
  /** Volumes are mounted below; Docker must see what is mounted there. */
  readonly mountRoot: string;
  readonly defaults: Options;
  readonly scope: Scope | undefined;
  readonly secretsFolder: string | undefined;
}

export interface DockerFrontendOptions extends DockerSettings {
  readonly pipeline: Pipeline;
  readonly log: Logger;
  /** Rejects when Docker does not see what is mounted there. */
  readonly requireSeen: (path: string) => Promise<void>;
}

export interface DockerFrontend {
  /** Takes over a connection that speaks HTTP/1.1. */
  accept(socket: Duplex): void;
  /** Refuses new requests, waits up to `limitMs` for those in flight, then closes every connection. Called again, it only shortens the wait. */
  stop(limitMs: number): Promise<void>;
}

const contentType = 'application/vnd.docker.plugins.v1.2+json';

/** A request is a name and some options. */
const maxBodyBytes = 2 ** 20;

/** Milliseconds in which it must have come. */
const bodyLimitMs = 10_000;

export function createDockerFrontend(driver: Driver, options: DockerFrontendOptions): DockerFrontend {
  const { pipeline, log } = options;
  const volumes = createVolumeDriver(
    {
      driver,
      catalog: driver.catalog ?? singleCatalog(driver),
      index: openVolumeIndex(options.stateFolder),
      mounts: openMountRecords(options),
      secrets: secretFiles(options.secretsFolder),
      requireSeen: options.requireSeen,
      defaults: options.defaults,
      scope: options.scope,
    },
    log,
  );
  const server = createServer({ keepAlive: true, keepAliveTimeout: 0, requestTimeout: 0 });
  const sockets = new Set<Duplex>();
  /** One for each request that is not answered yet. */
  const callers = new Set<AbortController>();
  const whenQuiet: (() => void)[] = [];
  let stopping = false;

  server.on('request', (request, response) => {
    void respond(request, response).catch((error: unknown) => {
      log.debug('a client of the Docker door went away', { reason: asCallError(error).message });
      response.destroy();
    });
  });

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const endpoint = endpointFor(request, response);
    if (!endpoint) return;
    const caller = new AbortController();
    callers.add(caller);
    response.once('close', () => {
      callers.delete(caller);
      if (callers.size === 0) becomeQuiet();
      // Docker does not tell giving up from going away. Work goes on, as Docker asks again.
      if (!response.writableFinished) caller.abort(new CallError('DEADLINE_EXCEEDED', 'the caller has left'));
    });
    try {
      if (stopping) throw new CallError('UNAVAILABLE', 'the plugin is stopping');
      const message = parseMessage(await readBody(request));
      send(response, 200, { Err: '', ...(await handle(endpoint, message, caller.signal)) });
    } catch (error) {
      send(response, 200, { Err: asCallError(error).message });
    }
  }

  function handle(endpoint: DockerEndpoint, message: DockerMessage, signal: AbortSignal): Promise<object> {
    const { method, routine, limitMs } = endpoint;
    const { Name: name, ID: id } = message;
    return pipeline.handle(
      {
        method,
        signal,
        secrets: {},
        limitMs,
        routine,
        summary: { ...(name !== undefined && { name }), ...(id !== undefined && { id }) },
        details: () => redacted(message, new Set()),
      },
      (call) => endpoint.answer(volumes, call, message),
    );
  }

  void volumes.leftovers.takeUpAll().catch((error: unknown) => {
    log.warn('mounts left by an earlier run could not be looked at', { error: asCallError(error).message });
  });

  return {
    accept(socket) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      server.emit('connection', socket);
      socket.resume();
    },
    async stop(limitMs) {
      stopping = true;
      volumes.leftovers.stop();
      const timer = setTimeout(endAll, limitMs);
      await new Promise<void>((resolve) => {
        whenQuiet.push(resolve);
        if (callers.size === 0) becomeQuiet();
      });
      clearTimeout(timer);
      endAll();
    },
  };

  function endAll(): void {
    const reason = new CallError('UNAVAILABLE', 'the plugin is stopping');
    for (const caller of callers) caller.abort(reason);
    for (const socket of sockets) socket.destroy();
  }

  function becomeQuiet(): void {
    for (const wake of whenQuiet.splice(0)) wake();
  }
}

/** Undefined: it was answered. */
function endpointFor(request: IncomingMessage, response: ServerResponse): DockerEndpoint | undefined {
  const { headers, method, url = '' } = request;
  const { remoteAddress, encrypted } = request.socket as { remoteAddress?: string; encrypted?: boolean };
  // A web page can make a browser send such requests to addresses of this machine; it can make none without this header, or over a unix socket.
  if (headers.origin !== undefined || (remoteAddress && !encrypted)) {
    send(response, 403, { Err: 'the volume plugin protocol is served on unix sockets and, with TLS, on TCP' });
    return undefined;
  }
  const endpoint = Object.hasOwn(dockerEndpoints, url) ? dockerEndpoints[url] : undefined;
  if (endpoint && method === 'POST') return endpoint;
  send(response, endpoint ? 405 : 404, { Err: `there is no ${method} ${url.slice(0, 100)} here` });
  return undefined;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const timer = setTimeout(() => request.destroy(), bodyLimitMs);
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of request) {
      parts.push(part);
      bytes += part.length;
      if (bytes > maxBodyBytes) throw new CallError('INVALID_ARGUMENT', 'the request is too long');
    }
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(parts).toString('utf8');
}

function send(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed) return;
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
