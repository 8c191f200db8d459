/** `switchboard serve`: from settings to a server, and from a signal to its end. */
import { join } from 'node:path';
import { formatProblem } from '../config/problem.ts';
import { createLogger, type Logger } from '../core/logger.ts';
import { commit, version } from '../core/version.ts';
import { surviveDefects } from './defects.ts';
import { embeddedConfig } from './embedded-config.ts';
import { exitCodes } from './exit-codes.ts';
import { openLogFile } from './log-file.ts';
import { loadMainConfig } from './main-config.ts';
import type { ServeSettings } from './serve-settings.ts';
import { type RunningServer, startServer } from './server.ts';
import { serviceManager } from './service-manager.ts';
import type { Shell } from './shell.ts';
import { keepHeapSmall } from './small-heap.ts';
import { stopSignals } from './stop-signals.ts';

/** Serves until it is told to stop, and resolves with the exit code. Rejects when it cannot start, or had better start anew. */
export async function serve(settings: ServeSettings, shell: Shell): Promise<number> {
  const logFile = settings.logFile && openLogFile({ ...settings.logFile, onFailure: (why) => shell.err(`${why}\n`) });
  const write = (line: string) => {
    shell.out(line);
    logFile?.write(line);
  };
  const log = createLogger({ level: settings.logLevel, format: settings.logFormat, write });
  const signals = stopSignals(log);
  const defects = surviveDefects(log);
  const manager = serviceManager(shell.env, log);
  try {
    const server = await start(settings, shell, log);
    manager.ready(server.addresses);
    signals.onHangup(() => void server.driver.begin?.());
    const signal = await Promise.race([signals.first, defects.fatal]).catch(async (error: unknown) => {
      await server.stop(0);
      throw error;
    });
    const callsInFlight = server.pipeline.inFlight().length;
    log.info('stopping', { signal, callsInFlight });
    void signals.second.then(() => server.stop(0));
    await Promise.all([server.stop(settings.stopTimeoutMs), manager.stopping(callsInFlight)]);
    log.info('stopped');
    return exitCodes.done;
  } catch (error) {
    logFile?.write(`${new Date().toISOString()} ended: ${error instanceof Error ? error.message : String(error)}\n`);
    throw error;
  } finally {
    manager.stop();
    defects.stop();
    signals.stop();
    await logFile?.close();
  }
}

async function start(settings: ServeSettings, shell: Shell, log: Logger): Promise<RunningServer> {
  const { configPath, stateDirectory } = settings;
  const config = configPath ? await loadMainConfig(configPath, shell.env) : await embeddedConfig(stateDirectory);
  for (const warning of config.loaded.warnings) log.warn(formatProblem(warning));
  const server = await startServer({ config, settings, env: shell.env, log });
  keepHeapSmall();
  log.info('ready', {
    addresses: server.addresses,
    ...(server.httpAddresses.length > 0 && { http: server.httpAddresses }),
    name: settings.csiName,
    driver: config.loaded.driver,
    modes: (['controller', 'node'] as const).filter((mode) => settings.modes[mode]),
    node: settings.nodeName,
    version,
    commit,
    // Since the process began.
    startupMs: Math.round(performance.now()),
  });
  void server.driver.begin?.();
  if (configPath === undefined) shell.err(welcome(stateDirectory, server.addresses, shell.env));
  return server;
}

function welcome(stateDirectory: string, addresses: readonly string[], env: Shell['env']): string {
  const [address = ''] = addresses;
  // A wrapper such as `npm start` says how it is called; it gives the state directory to every command.
  const { SWITCHBOARD_COMMAND: wrapper, SWITCHBOARD_STATE_DIR: chosen } = env;
  const isUsual = address === `unix://${join(stateDirectory, 'csi.sock')}` && (wrapper !== undefined || !chosen);
  const endpoint = isUsual ? '' : ` --endpoint ${address}`;
  const program = wrapper ?? 'switchboard';
  return `
There is no configuration, so everything is kept in ${stateDirectory}
  connections/   one file for each place to keep volumes; local.yaml keeps them in directories of this machine
  volumes/       those directories

Next, in another terminal:
  ${program} ctl create data --connection local --size 1Gi${endpoint}
  ${program} ctl list${endpoint}

`;
}
