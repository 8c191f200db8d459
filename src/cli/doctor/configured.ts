/** What is configured on this machine, as a server would find it. Nothing is written, and no storage is asked. */

import { join } from 'node:path';
import { parseConfig } from '../../config/load.ts';
import { ConfigError, type Problem } from '../../config/problem.ts';
import { readConfigFile } from '../../config/read-file.ts';
import type { Driver } from '../../core/driver.ts';
import type { ProxyConfig } from '../../proxy/config.ts';
import { connectionMaker, connectionParser } from '../../proxy/connection-maker.ts';
import { createLocalNode } from '../../proxy/local-node.ts';
import { type CheckedFile, checkPaths } from '../check-files.ts';
import { embeddedMain } from '../embedded-config.ts';
import { directEnvironment, type ProcessFacts, proxyEnvironment } from '../environment.ts';
import { type DirectMain, loadMainConfig, type MainConfig, mainSchemaNamed, schemaNamed } from '../main-config.ts';
import { secretsIn } from './secrets.ts';

export interface ConfiguredConnection {
  /** The driver's name where a driver serves directly. */
  readonly name: string;
  readonly driver: string;
  /** The folder that its volumes are made in, for drivers that have one. */
  readonly basePath: string | undefined;
  /** How the controller comes by the share that its folder is on; undefined: it is on none. */
  readonly controllerMount?: string | undefined;
  /** Sizes are enforced by the file system. */
  readonly quota: boolean;
  /** What its snapshots are kept by besides folders: `restic`, `kopia`. */
  readonly repositories: readonly string[];
  /** Makes its driver, which nothing has been asked of yet. */
  open(): Promise<Driver>;
}

export interface Configured {
  /** The main file; undefined: the server would use a configuration of its own. */
  readonly path: string | undefined;
  /** Undefined when it cannot be used; its problems say why. */
  readonly main: MainConfig | undefined;
  /** What `switchboard check` says. */
  readonly files: readonly CheckedFile[];
  /** Those whose files are in order. */
  readonly connections: readonly ConfiguredConnection[];
  /** Values that must not be shown. */
  readonly secrets: readonly string[];
}

export const nothingConfigured: Configured = {
  path: undefined,
  main: undefined,
  files: [],
  connections: [],
  secrets: [],
};

/** Reads a main file and the connections that it brings along. */
export async function readConfigured(path: string, facts: ProcessFacts): Promise<Configured> {
  const [files, main] = await Promise.all([checkPaths([path], facts.env), loadMain(path, facts)]);
  if (main === undefined) return { ...nothingConfigured, path, files };
  const { connections, secrets } = await connectionsOf(main, files, facts);
  const own = secretsIn(mainSchemaNamed(main.loaded.driver), main.loaded.input);
  return { path, main, files, connections, secrets: [...own, ...secrets] };
}

/** The configuration that a server without one has made for itself before, if it has. */
export async function readEmbedded(stateDirectory: string, facts: ProcessFacts): Promise<Configured> {
  const folder = join(stateDirectory, 'connections');
  const files = (await checkPaths([folder], facts.env)).filter((one) => one.connection !== undefined);
  if (files.length === 0) return nothingConfigured;
  const main = embeddedMain(stateDirectory);
  return { path: undefined, main, files, ...(await connectionsOf(main, files, facts)) };
}

async function loadMain(path: string, facts: ProcessFacts): Promise<MainConfig | undefined> {
  try {
    return await loadMainConfig(path, facts.env);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

interface Opened {
  readonly connections: readonly ConfiguredConnection[];
  readonly secrets: readonly string[];
}

async function connectionsOf(main: MainConfig, files: readonly CheckedFile[], facts: ProcessFacts): Promise<Opened> {
  if (main.kind === 'direct') {
    const usable = files.every((file) => file.problems.every(isWarning));
    return { connections: usable ? [directConnection(main, facts)] : [], secrets: [] };
  }
  const config = main.loaded.value;
  const usable = files.filter((one) => one.connection !== undefined);
  const opened = await Promise.all(usable.map((one) => proxiedConnection(one, config, facts)));
  return {
    connections: opened.flatMap((one) => one.connection ?? []),
    secrets: opened.flatMap((one) => one.secrets),
  };
}

function directConnection(main: DirectMain, facts: ProcessFacts): ConfiguredConnection {
  const { type, loaded } = main;
  return {
    name: loaded.driver,
    driver: loaded.driver,
    ...placeOf(loaded.driver, loaded.value),
    async open() {
      await type.prepare?.(loaded.value as never);
      return type.create(loaded.value as never, directEnvironment(facts));
    },
  };
}

async function proxiedConnection(
  { file, connection: name = '', problems }: CheckedFile,
  config: ProxyConfig,
  facts: ProcessFacts,
) {
  const environment = proxyEnvironment(facts);
  try {
    const text = await readConfigFile(file);
    const parsed = connectionParser(config, environment)(text, file);
    const { service, node, csi } = config;
    const { input } = parseConfig(text, file, schemaNamed, { env: facts.env, under: { service, node, csi } });
    const connection: ConfiguredConnection = {
      name,
      driver: parsed.type.name,
      ...placeOf(parsed.type.name, parsed.options),
      async open() {
        const { nodeId, nodeTopology } = config.proxy;
        const localNode = createLocalNode(nodeId, nodeTopology, environment, facts.log);
        return (await connectionMaker(config, environment, localNode)(name, text, file)).driver;
      },
    };
    return {
      connection: problems.every(isWarning) ? connection : undefined,
      secrets: secretsIn(schemaNamed(parsed.type.name), input),
    };
  } catch (error) {
    if (error instanceof ConfigError) return { connection: undefined, secrets: [] };
    throw error;
  }
}

function isWarning({ severity }: Problem): boolean {
  return severity === 'warning';
}

type Place = Pick<ConfiguredConnection, 'basePath' | 'controllerMount' | 'quota' | 'repositories'>;

/** Drivers of directories keep their options in a block of their own, under the driver's name or that of what they mount. */
function placeOf(driver: string, options: unknown): Place {
  const blocks = options as Readonly<Record<string, unknown>>;
  const block = [driver, driver.replace(/-client$/, '')].map((name) => blocks[name]).find(isBlock);
  const { controllerBasePath, controllerMount, quota, snapshots } = block ?? {};
  return {
    basePath: typeof controllerBasePath === 'string' ? controllerBasePath : undefined,
    controllerMount: typeof controllerMount === 'string' ? controllerMount : undefined,
    quota: quota === 'project',
    repositories: isBlock(snapshots)
      ? ['restic', 'kopia'].filter((one) => snapshots.default_driver === one || isBlock(snapshots[one]))
      : [],
  };
}

function isBlock(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
