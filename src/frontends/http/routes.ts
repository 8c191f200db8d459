/** What there is to read, by path. */
import type { Registry } from 'prom-client';
import { capacityMetrics } from './gauges.ts';
import { plain, type Reply } from './http-server.ts';
import { ask, type Observer } from './observer.ts';
import { pagePolicy, statusPage } from './page.ts';
import type { Sources } from './sources.ts';
import { reasonNotReady, tellStatus } from './tell-status.ts';

/** Milliseconds a reader waits for answers: readiness is asked each time, and a scraper's usual patience is 10 s. */
const patience = { ready: 3500, files: 250, capacity: 8000 } as const;

export interface RoutesOptions {
  readonly sources: Sources;
  readonly observer: Observer;
  readonly registry: Registry;
  /** True as soon as the server stops: nobody should send calls any more. */
  readonly isStopping: () => boolean;
}

type Page = () => Promise<Reply>;

export function createRoutes({
  sources,
  observer,
  registry,
  isStopping,
}: RoutesOptions): (path: string) => Promise<Reply> {
  const metrics = (body: string): Reply => ({ status: 200, type: registry.contentType, body });

  async function ready(): Promise<Reply> {
    if (isStopping()) return plain(503, 'the plugin is stopping');
    await ask(patience.ready, [observer.ready]);
    const reason = reasonNotReady(observer.ready.latest());
    return reason === undefined ? plain(200, 'ok') : plain(503, reason);
  }

  const pages: Readonly<Record<string, Page>> = {
    async '/'() {
      const body = statusPage(await tellStatus(sources, observer));
      return {
        status: 200,
        type: 'text/html; charset=utf-8',
        body,
        headers: { 'content-security-policy': pagePolicy },
      };
    },
    async '/status.json'() {
      const body = `${JSON.stringify(await tellStatus(sources, observer), null, 2)}\n`;
      return { status: 200, type: 'application/json', body };
    },
    async '/metrics'() {
      await ask(patience.files, [observer.files, observer.ready]);
      return metrics(await registry.metrics());
    },
    async '/metrics/capacity'() {
      await ask(patience.files, [observer.files]);
      await ask(patience.capacity, observer.askable().map(observer.space));
      return metrics(await capacityMetrics(observer));
    },
    // Whoever reads this knows that the event loop turns.
    '/healthz': async () => plain(200, 'ok'),
    '/readyz': ready,
  };
  const known = Object.keys(pages).join(', ');
  return async (path) => (Object.hasOwn(pages, path) ? pages[path]?.() : undefined) ?? plain(404, `There is: ${known}`);
}
