/** The server as parts plugged together: driver, pipeline, CSI service, listening sockets. Tests and benchmarks use it in their own process. */
import { resolve } from 'node:path';
import { isExecutable } from '../backends/exec/own-program.ts';
import { createRunner } from '../backends/exec/runner.ts';
import { createStarter } from '../backends/exec/starter.ts';
import { createSshHosts } from '../backends/ssh/ssh-hosts.ts';
import type { Driver } from '../core/driver.ts';
import type { Logger } from '../core/logger.ts';
import { commit, version } from '../core/version.ts';
import { within } from '../core/within.ts';
import { createCsiFrontend } from '../frontends/csi/frontend.ts';
import { detectSwarm, forSwarm } from '../frontends/csi/swarm.ts';
import { parseEndpoint } from '../frontends/listener/endpoints.ts';
import { type Listener, listen } from '../frontends/listener/listen.ts';
import { requireSeenByDocker } from '../node/seen-by-docker.ts';
import { type Meter, silentMeter } from '../pipeline/meter.ts';
import { createPipeline, type Pipeline } from '../pipeline/pipeline.ts';
import { type DockerDoor, noDockerDoor, openDockerDoor } from './docker-door.ts';
import { dockerSight } from './docker-sight.ts';
import { hostSettings } from './host-options.ts';
import { hostTools } from './host-tools.ts';
import type { HttpDoor, HttpDoorOptions, OpenHttpDoor } from './http-door.ts';
import type { MainConfig } from './main-config.ts';
import { openDriver } from './open-driver.ts';
import type { ServeSettings } from './serve-settings.ts';
import type { Shell } from './shell.ts';
import { atSpecVersion } from './spec-version.ts';
import { claimState, type StateClaim } from './state-claim.ts';

export interface ServerOptions {
  readonly config: MainConfig;
  readonly settings: ListenSettings &
    Pick<ServeSettings, 'csiName' | 'nodeName' | 'specMinor' | 'modes'> &
    Partial<Pick<ServeSettings, 'stateDirectory' | 'host' | 'hostName' | 'http' | 'docker' | 'swarm'>>;
  readonly env: Shell['env'];
  readonly log: Logger;
}

type ListenSettings = Pick<ServeSettings, 'endpoints' | 'socketMode' | 'tls' | 'allowInsecureTcp'>;

export interface RunningServer {
  /** Where it listens, as endpoint texts that clients take. */
  readonly addresses: readonly string[];
  /** Where metrics and the status page are, if anywhere. */
  readonly httpAddresses: readonly string[];
  readonly driver: Driver;
  readonly pipeline: Pipeline;
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
  const { csiName, nodeName, hostName, socketMode, docker } = settings;
  const httpDoor = settings.http && (await newHttpDoor({ settings: settings.http, csiName, socketMode, log }));
  const metrics: Meter = httpDoor?.metrics ?? silentMeter;
  const modes = (['controller', 'node'] as const).filter((mode) => settings.modes[mode]);
  const host = hostSettings(settings.host ?? {}, config.host, env, (warning) => log.warn(warning));
  const tools = hostTools(host, env);
  const run = createRunner({
    env,
    strategy: tools.strategy,
    placeOf: tools.placeOf,
    searchPath: host.searchPath,
    startChild: isExecutable() ? createStarter() : undefined,
    onCommand: ({ program, outcome, milliseconds }) =>
      metrics.backendAnswered({ backend: 'exec', request: program, outcome, seconds: milliseconds / 1000 }),
  });
  const stateDirectory = settings.stateDirectory && resolve(settings.stateDirectory);
  const ssh = createSshHosts(({ title, outcome, milliseconds }) =>
    metrics.backendAnswered({ backend: 'ssh', request: title, outcome, seconds: milliseconds / 1000 }),
  );
  const facts = {
    csiName,
    nodeName,
    hostName,
    env,
    stateDirectory,
    run,
    ssh,
    hostRoot: host.root,
    log,
    copies: metrics,
  };
  const driver = await openDriver(config, facts);
  const pipeline = createPipeline({ log, metrics, onFailure: httpDoor?.onFailure });
  const endpoints = settings.endpoints.map(parseEndpoint);
  const sockets = endpoints.flatMap((endpoint) => (endpoint.kind === 'unix' ? endpoint.path : []));
  const swarm = detectSwarm(settings.swarm ?? 'auto', sockets);
  const requireSeen = docker ? dockerSight(docker, log) : requireSeenByDocker;
  const frontend = createCsiFrontend(forSwarm(atSpecVersion(driver, settings.specMinor), swarm, requireSeen), {
    pipeline,
    pluginName: csiName,
    version,
    commit,
    modes: new Set(modes),
  });
  // Docker has one plugin make its volumes and mount them.
  const door =
    docker && modes.length === 2
      ? openDockerDoor(driver, { settings: docker, pipeline, log, requireSeen })
      : noDockerDoor;
  let claim: StateClaim | undefined;
  let listener: Listener | undefined;
  let dockerListener: Listener | undefined;
  let http: OpenHttpDoor | undefined;
  try {
    claim = await claimFor(settings, stateDirectory, log);
    listener = await listen({ ...settings, endpoints, log, onHttp2: frontend.accept, onHttp1: door.accept });
    dockerListener = docker?.endpoint === undefined ? undefined : await listenForDocker(docker.endpoint, door, log);
    const addresses = [...listener.addresses, ...(dockerListener?.addresses ?? [])];
    const plugin = { name: csiName, nodeName, modes, version, commit, addresses };
    http = await httpDoor?.open({ driver, pipeline, plugin, log });
  } catch (error) {
    await Promise.all([listener?.close(), dockerListener?.close(), claim?.release()]);
    await driver.close();
    throw error;
  }
  claim?.serving();
  const { addresses, stopAccepting, close } = listener;
  void door.begin();

  async function shutDown(limitMs: number): Promise<void> {
    http?.stopping();
    claim?.stopping();
    await Promise.all([stopAccepting(), dockerListener?.stopAccepting()]);
    await Promise.all([frontend.stop(limitMs), door.stop(limitMs)]);
    const ended = Promise.allSettled([
      pipeline.idle(),
      driver.close(),
      close(),
      dockerListener?.close(),
      http?.close(),
    ]);
    if (!(await within(graceMs, ended))) log.warn('some work did not end; it is left behind');
    await claim?.release();
  }

  let stopping: Promise<void> | undefined;
  return {
    addresses: [...addresses, ...(dockerListener?.addresses ?? [])],
    httpAddresses: http?.addresses ?? [],
    driver,
    pipeline,
    stop(limitMs) {
      if (stopping) void Promise.all([frontend.stop(limitMs), door.stop(limitMs)]);
      stopping ??= shutDown(limitMs);
      return stopping;
    },
  };
}

/** Controllers remember nothing of this machine, so there may be any number of them; nodes and Docker's plugin do. */
async function claimFor(
  { csiName, modes, docker, endpoints }: ServerOptions['settings'],
  stateDirectory: string | undefined,
  log: Logger,
): Promise<StateClaim | undefined> {
  // Plugins of other names have volumes at other places.
  const node = modes.node ? [`node.${encodeURIComponent(csiName)}`] : [];
  const isDockers = docker?.endpoint !== undefined || endpoints.some((one) => one.includes('/run/docker/plugins/'));
  const claims = [...node, ...(isDockers ? ['docker'] : [])];
  if (stateDirectory === undefined || claims.length === 0) return undefined;
  return await claimState({ stateDirectory, claims, endpoints, log });
}

/** Loaded only when it is wanted, so that others start without it. */
async function newHttpDoor(options: HttpDoorOptions): Promise<HttpDoor> {
  const { createHttpDoor } = await import('./http-door.ts');
  return createHttpDoor(options);
}

/** A socket that speaks nothing but Docker's protocol. */
function listenForDocker(endpoint: string, { accept }: DockerDoor, log: Logger): Promise<Listener> {
  return listen({ endpoints: [parseEndpoint(endpoint)], log, onHttp2: (stream) => stream.destroy(), onHttp1: accept });
}
