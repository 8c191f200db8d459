/** The HTTP door: metrics, health, and a page for people. It reads; nothing can be changed through it. */
import type { Duplex } from 'node:stream';
import type { Registry } from 'prom-client';
import { addGauges } from './gauges.ts';
import { createHttpServer } from './http-server.ts';
import { createObserver } from './observer.ts';
import { createRoutes } from './routes.ts';
import type { Sources } from './sources.ts';

export interface HttpFrontend {
  /** Takes over a connection that speaks HTTP/1 from its first byte. */
  accept(connection: Duplex): void;
  /** From now on it is not ready. */
  stopping(): void;
  /** Ends all connections. */
  close(): void;
}

/** `registry`: what is counted already; what is looked up when it is read is added to it. */
export function createHttpFrontend(sources: Sources, registry: Registry): HttpFrontend {
  const observer = createObserver(sources);
  addGauges(registry, sources, observer);
  let isStopping = false;
  const answer = createRoutes({ sources, observer, registry, isStopping: () => isStopping });
  const server = createHttpServer({ answer, log: sources.log });
  return {
    accept: server.accept,
    stopping() {
      isStopping = true;
    },
    close: server.close,
  };
}
