/** The HTTP door as a part of the server. Import it only when it is wanted: it brings the library that keeps metrics. */
import type { Logger } from '../core/logger.ts';
import { createHttpFrontend } from '../frontends/http/frontend.ts';
import type { Sources } from '../frontends/http/sources.ts';
import { parseEndpoint } from '../frontends/listener/endpoints.ts';
import { listen } from '../frontends/listener/listen.ts';
import type { PlaintextWords } from '../frontends/listener/tcp.ts';
import type { Meter } from '../pipeline/meter.ts';
import { createMetrics } from '../pipeline/metrics.ts';
import type { FailedCall } from '../pipeline/pipeline.ts';
import { createRecentFailures } from '../pipeline/recent-failures.ts';
import type { HttpSettings } from './http-settings.ts';

/** What the server's parts report to while they work. */
export interface HttpDoor {
  readonly metrics: Meter;
  readonly onFailure: (failed: FailedCall) => void;
  /** Begins to listen. Throws a CallError that names the endpoint that could not be opened. */
  open(sources: Omit<Sources, 'failures'>): Promise<OpenHttpDoor>;
}

export interface OpenHttpDoor {
  readonly addresses: readonly string[];
  /** From now on `/readyz` sends everybody away; the rest can still be read. */
  stopping(): void;
  close(): Promise<void>;
}

export interface HttpDoorOptions {
  readonly settings: HttpSettings;
  readonly csiName: string;
  /** Permission bits of a unix socket. */
  readonly socketMode: number;
  readonly log: Logger;
}

const plaintextWords: PlaintextWords = {
  refusal:
    'is reachable from other hosts, which could read the names of volumes, their paths and errors there: use a loopback address or a unix socket, ' +
    'or allow it with --http-allow-remote',
  warning:
    'lets anybody who can reach it read the names of volumes, their paths and errors, unencrypted (--http-allow-remote)',
};

export function createHttpDoor({ settings, csiName, socketMode, log }: HttpDoorOptions): HttpDoor {
  const metrics = createMetrics(csiName);
  const failures = createRecentFailures();
  return {
    metrics,
    onFailure: failures.add,
    async open(sources) {
      const frontend = createHttpFrontend({ ...sources, failures }, metrics.registry);
      const listener = await listen({
        endpoints: [parseEndpoint(settings.endpoint)],
        socketMode,
        allowInsecureTcp: settings.allowRemote,
        plaintextWords,
        log,
        onHttp1: frontend.accept,
        onHttp2: (stream) => stream.destroy(),
      });
      return {
        addresses: listener.addresses.map((address) => address.replace(/^tcp:/, 'http:')),
        stopping: frontend.stopping,
        async close() {
          frontend.close();
          await listener.close();
        },
      };
    },
  };
}
