/** The server as parts plugged together: driver, pipeline, CSI service, listening sockets. Tests and benchmarks use it in their own process. */
import { createRunner } from '../backends/exec/runner.ts';
import type { Driver } from '../core/driver.ts';
import type { Logger } from '../core/logger.ts';
import { commit, version } from '../core/version.ts';
import { createCsiFrontend } from '../frontends/csi/frontend.ts';
import { parseEndpoint } from '../frontends/listener/endpoints.ts';
import { type Listener, listen } from '../frontends/listener/listen.ts';
import { createMetrics, type Metrics } from '../pipeline/metrics.ts';
import { createPipeline, type Pipeline } from '../pipeline/pipeline.ts';
import { hostSettings } from './host-options.ts';
import { hostTools } from './host-tools.ts';
import type { MainConfig } from './main-config.ts';
import { openDriver } from './open-driver.ts';
import type { ServeSettings } from './serve-settings.ts';
import type { Shell } from './shell.ts';
import { atSpecVersion } from './spec-version.ts';

export interface ServerOptions {
  readonly config: MainConfig;
  readonly settings: ListenSettings &
    Pick<ServeSettings, 'csiName' | 'nodeName' | 'specMinor' | 'modes'> &
    Partial<Pick<ServeSettings, 'host'>>;
  readonly env: Shell['env'];
  readonly log: Logger;
}

type ListenSettings = Pick<ServeSettings, 'endpoints' | 'socketMode' | 'tls' | 'allowInsecureTcp'>;

export interface RunningServer {
  /** Where it listens, as endpoint texts that clients take. */
  readonly addresses: readonly string[];
  readonly driver: Driver;
  readonly pipeline: Pipeline;
  readonly metrics: Metrics;
  /**
   * Stops accepting, waits up to `limitMs` for calls in flight and cancels the rest, closes the driver, removes the sockets. Called again, it
   * only shortens the wait. Never rejects, and takes no longer than the limit and {@link graceMs} together.
   */
  stop(limitMs: number): Promise<void>;
}

/** Milliseconds for work to end after it was cancelled. */
const graceMs = 10_000;

/** Resolves when clients can connect. Rejects with CallError when a setting cannot work or an address cannot be listened on. */
export async function startServer({ config, settings, env, log }: ServerOptions): Promise<RunningServer> {
  const metrics = createMetrics(settings.csiName);
  const host = hostSettings(settings.host ?? {}, config.host, env, (warning) => log.warn(warning));
  const run = createRunner({
    env,
    strategy: hostTools(host, env).strategy,
    searchPath: host.searchPath,
    onCommand: ({ program, outcome, milliseconds }) =>
      metrics.backendAnswered({ backend: 'exec', request: program, outcome, seconds: milliseconds / 1000 }),
  });
  const { csiName, nodeName } = settings;
  const driver = await openDriver(config, { csiName, nodeName, env, run, log });
  const pipeline = createPipeline({ log, metrics });
  const frontend = createCsiFrontend(atSpecVersion(driver, settings.specMinor), {
    pipeline,
    pluginName: csiName,
    version,
    commit,
    modes: new Set((['controller', 'node'] as const).filter((mode) => settings.modes[mode])),
  });
  let listener: Listener;
  try {
    listener = await listen({
      ...settings,
      endpoints: settings.endpoints.map(parseEndpoint),
      log,
      onHttp2: frontend.accept,
      // Nothing else is served here.
      onHttp1: (socket) => socket.destroy(),
    });
  } catch (error) {
    await driver.close();
    throw error;
  }

  async function shutDown(limitMs: number): Promise<void> {
    await listener.stopAccepting();
    await frontend.stop(limitMs);
    const ended = Promise.all([pipeline.idle(), driver.close(), listener.close()]);
    if (!(await within(graceMs, ended))) log.warn('some work did not end; it is left behind');
  }

  let stopping: Promise<void> | undefined;
  return {
    addresses: listener.addresses,
    driver,
    pipeline,
    metrics,
    stop(limitMs) {
      if (stopping) void frontend.stop(limitMs);
      stopping ??= shutDown(limitMs);
      return stopping;
    },
  };
}

/** Whether the work ended in time. */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const done = work.then(
    () => true,
    () => true,
  );
  return Promise.race([done, late]).finally(() => clearTimeout(timer));
}
