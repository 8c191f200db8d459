/** The checks' tools, on the real machine. */
import { join, resolve } from 'node:path';
import { createRunner } from '../../backends/exec/runner.ts';
import type { HostOptions } from '../../config/host.ts';
import { detachedContext } from '../../core/call.ts';
import { silentLogger } from '../../core/logger.ts';
import { parseEndpoint } from '../../frontends/listener/endpoints.ts';
import { readMountTable } from '../../node/mount-table.ts';
import type { ProcessFacts } from '../environment.ts';
import { hostSettings } from '../host-options.ts';
import { hostTools } from '../host-tools.ts';
import { loadMainConfig } from '../main-config.ts';
import type { ServeSettings } from '../serve-settings.ts';
import type { Flags } from '../setting-reader.ts';
import { settingsAsServed } from '../settings-as-served.ts';
import type { Shell } from '../shell.ts';
import { askPlugin } from './ask-plugin.ts';
import { bounded, whyOf } from './bounded.ts';
import { carefulFiles } from './careful-files.ts';
import { type Configured, nothingConfigured, readConfigured, readEmbedded } from './configured.ts';
import { httpGet } from './http-get.ts';
import type { Files, Inspection } from './inspection.ts';

/** Milliseconds for everything together, and for reading the configuration. */
const limits = { all: 10_000, configuration: 3000 } as const;

/** How children are ended: there is no time to be polite. */
const endings = { killGraceMs: 300, abandonMs: 300 } as const;

export interface Opened {
  readonly inspection: Inspection;
  /** With which drivers can be made. */
  readonly facts: ProcessFacts;
}

/** `flags`: those of `serve` that matter here. Throws what `serve` throws for settings that cannot work. */
export async function openInspection(flags: Flags, shell: Shell): Promise<Opened> {
  const { env, now } = shell;
  const settings = await settingsAsServed(flags, shell);
  const { csiName, nodeName, hostName: name, modes } = settings;
  const call = detachedContext(silentLogger, AbortSignal.timeout(limits.all));
  const mounts = await readMountTable();
  const early = carefulFiles(mounts, call, createRunner({ env, ...endings }));
  const source = await sourceOf(settings, early);
  const host = hostSettings(settings.host, await hostKey(source, shell), env, () => {});
  const tools = hostTools(host, env);
  const run = createRunner({ env, strategy: tools.strategy, searchPath: host.searchPath, ...endings });
  const facts: ProcessFacts = { csiName, nodeName, hostName: name, env, run, hostRoot: host.root, log: silentLogger };
  const files = carefulFiles(mounts, call, run);
  const configured = await configuredBy(source, early, facts);
  const inspection: Inspection = {
    ...{ env, now, nodeName, modes, configured, files, mounts, call, run, askPlugin, httpGet },
    uid: process.getuid?.() ?? -1,
    hostRoot: host.root,
    stateDirectory: resolve(settings.stateDirectory),
    endpoints: settings.endpoints.map(parseEndpoint),
    locate: tools.locateProgram,
  };
  return { inspection, facts };
}

/** A main file, or the folder of a server that was given none. */
type Source =
  | { readonly file: string; readonly dead?: string | undefined }
  | { readonly file: undefined; readonly stateDirectory: string };

/** Configuration on network storage is read only when that storage answers a child. */
async function sourceOf({ configPath, stateDirectory }: ServeSettings, files: Files): Promise<Source> {
  if (configPath === undefined) return { file: undefined, stateDirectory: resolve(stateDirectory) };
  return { file: configPath, dead: await whyDead(files, configPath) };
}

async function whyDead(files: Files, path: string): Promise<string | undefined> {
  return files.space(resolve(path)).then(() => undefined, whyOf);
}

/** A file that cannot be used has no such key; that it cannot be used is found later. */
async function hostKey(source: Source, { env }: Shell): Promise<HostOptions | undefined> {
  if (source.file === undefined || source.dead !== undefined) return undefined;
  return (await loadMainConfig(source.file, env).catch(() => undefined))?.host;
}

async function configuredBy(source: Source, files: Files, facts: ProcessFacts): Promise<Configured> {
  if (source.file === undefined) return embedded(source.stateDirectory, files, facts);
  if (source.dead !== undefined) return unreadable(source.file, source.dead);
  const main = await loadMainConfig(source.file, facts.env).catch(() => undefined);
  const folder = main?.kind === 'proxy' ? main.loaded.value.proxy.configFolder : undefined;
  const dead = folder === undefined ? undefined : await whyDead(files, folder);
  if (dead !== undefined) return unreadable(source.file, dead);
  return bounded(limits.configuration, source.file, readConfigured(source.file, facts)).catch((error: unknown) =>
    unreadable(source.file, whyOf(error)),
  );
}

function unreadable(file: string, message: string): Configured {
  const problem = { severity: 'error', file, line: 0, column: 0, path: '', message } as const;
  return { ...nothingConfigured, path: file, files: [{ file, problems: [problem] }] };
}

async function embedded(stateDirectory: string, files: Files, facts: ProcessFacts): Promise<Configured> {
  const folder = join(stateDirectory, 'connections');
  // One that cannot be looked at is found by the check of the state directory.
  const there = await files.look(folder).catch(() => undefined);
  if (there?.kind !== 'directory') return nothingConfigured;
  return bounded(limits.configuration, folder, readEmbedded(stateDirectory, facts)).catch(() => nothingConfigured);
}
