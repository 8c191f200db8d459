/** The checks' tools, on the real machine. */
import { access } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createRunner } from '../../backends/exec/runner.ts';
import { detachedContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { silentLogger } from '../../core/logger.ts';
import { parseEndpoint } from '../../frontends/listener/endpoints.ts';
import { readMountTable } from '../../node/mount-table.ts';
import { currentAccount } from '../account.ts';
import { defaultEndpoint } from '../client-target.ts';
import type { ProcessFacts } from '../environment.ts';
import { hostName } from '../host-name.ts';
import { hostSettings } from '../host-options.ts';
import { hostTools } from '../host-tools.ts';
import { loadMainConfig } from '../main-config.ts';
import { type ServeSettings, serveSettings } from '../serve-settings.ts';
import type { Flags } from '../setting-reader.ts';
import type { Shell } from '../shell.ts';
import { systemConfigPath } from '../state-directory.ts';
import { CommandError } from '../usage-error.ts';
import { askPlugin } from './ask-plugin.ts';
import { bounded } from './bounded.ts';
import { carefulFiles } from './careful-files.ts';
import { type Configured, nothingConfigured, readConfigured, readEmbedded } from './configured.ts';
import { httpGet } from './http-get.ts';
import type { Files, Inspection } from './inspection.ts';

/** Milliseconds for everything together, for reading the configuration, and for ending children. */
const limits = { all: 10_000, configuration: 4000, killGrace: 300, abandon: 300 } as const;

export interface Opened {
  readonly inspection: Inspection;
  /** With which drivers can be made. */
  readonly facts: ProcessFacts;
}

/** `flags`: those of `serve` that matter here. Throws what `serve` throws for settings that cannot work. */
export async function openInspection(flags: Flags, shell: Shell): Promise<Opened> {
  const settings = await settingsOf(flags, shell);
  const call = detachedContext(silentLogger, AbortSignal.timeout(limits.all));
  const mounts = await readMountTable();
  const config = settings.configPath;
  const plainRun = createRunner({ env: shell.env, killGraceMs: limits.killGrace, abandonMs: limits.abandon });
  const early = carefulFiles(mounts, call, plainRun);
  if (config !== undefined) await assertAlive(early, dirname(resolve(config)));
  const host = hostSettings(
    settings.host,
    config === undefined ? undefined : await hostKey(config, shell),
    shell.env,
    () => {},
  );
  const tools = hostTools(host, shell.env);
  const run = createRunner({
    env: shell.env,
    strategy: tools.strategy,
    searchPath: host.searchPath,
    killGraceMs: limits.killGrace,
    abandonMs: limits.abandon,
  });
  const { csiName, nodeName, hostName: name } = settings;
  const facts: ProcessFacts = {
    ...{ csiName, nodeName, hostName: name, env: shell.env, run, hostRoot: host.root },
    log: silentLogger,
  };
  const files = carefulFiles(mounts, call, run);
  const configured =
    config === undefined
      ? await embedded(settings.stateDirectory, files, facts)
      : await configuration(config, files, facts);
  const inspection: Inspection = {
    ...{ env: shell.env, now: shell.now, nodeName, modes: settings.modes, configured, files, mounts, call, run },
    uid: process.getuid?.() ?? -1,
    hostRoot: host.root,
    stateDirectory: resolve(settings.stateDirectory),
    endpoints: settings.endpoints.map(parseEndpoint),
    locate: tools.locateProgram,
    askPlugin,
    httpGet,
  };
  return { inspection, facts };
}

/** As `serve` would have it. Where it would not know where to listen, the usual sockets are looked at. */
async function settingsOf(flags: Flags, shell: Shell): Promise<ServeSettings> {
  const account = currentAccount();
  const machine = {
    ...account,
    hostName: await hostName(shell.env),
    pid: process.pid,
    outIsTerminal: shell.outIsTerminal,
    hasSystemConfig: await access(systemConfigPath).then(
      () => true,
      () => false,
    ),
  };
  try {
    return serveSettings(flags, shell.env, machine);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return serveSettings({ ...flags, endpoint: [await defaultEndpoint(shell.env, account)] }, shell.env, machine);
  }
}

/** A file that cannot be used has no such key; that it cannot be used is found later. */
async function hostKey(path: string, shell: Shell) {
  const main = await bounded(limits.configuration, path, loadMainConfig(path, shell.env)).catch((error: unknown) => {
    if (error instanceof CallError) return undefined;
    throw error;
  });
  return main?.host;
}

async function configuration(path: string, files: Files, facts: ProcessFacts): Promise<Configured> {
  const main = await loadMainConfig(path, facts.env).catch(() => undefined);
  if (main?.kind === 'proxy') await assertAlive(files, main.loaded.value.proxy.configFolder);
  return bounded(limits.configuration, path, readConfigured(path, facts));
}

async function embedded(stateDirectory: string, files: Files, facts: ProcessFacts): Promise<Configured> {
  const folder = join(resolve(stateDirectory), 'connections');
  // One that cannot be looked at is found by the check of the state directory.
  const there = await files.look(folder).catch(() => undefined);
  if (there?.kind !== 'directory') return nothingConfigured;
  return bounded(limits.configuration, folder, readEmbedded(resolve(stateDirectory), facts));
}

/** Configuration on network storage is read only when that storage answers a child. */
async function assertAlive(files: Files, folder: string): Promise<void> {
  await files.space(folder);
}
