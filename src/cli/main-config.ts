/** The main configuration file: `driver: proxy` with a folder of connections, or one driver that serves directly. */
import { type GenericSchema, intersect, object, optional } from 'valibot';
import { type HostOptions, hostSchema } from '../config/host.ts';
import { type LoadedConfig, parseConfig } from '../config/load.ts';
import { readConfigFile } from '../config/read-file.ts';
import { driverType, driverTypes } from '../drivers/index.ts';
import type { DriverType } from '../drivers/type.ts';
import { type ProxyConfig, proxySchema } from '../proxy/config.ts';
import type { Shell } from './shell.ts';

export type MainConfig = (ProxyMain | DirectMain) & {
  /** How programs of the host are reached. */
  readonly host?: HostOptions | undefined;
};

export interface ProxyMain {
  readonly kind: 'proxy';
  readonly loaded: LoadedConfig<ProxyConfig>;
}

export interface DirectMain {
  readonly kind: 'direct';
  readonly type: DriverType;
  readonly loaded: LoadedConfig<unknown>;
}

const proxyName = 'proxy';

/** What only a main file may have, whatever its driver: it is about the whole process. */
const processSchema = object({ host: optional(hostSchema) });

/** The schema of a connection file that says `driver: <name>`. */
export function schemaNamed(name: string): GenericSchema | undefined {
  return name === proxyName ? proxySchema : driverType(name)?.schema;
}

/** The schema of a main file that says `driver: <name>`. */
export function mainSchemaNamed(name: string): GenericSchema | undefined {
  const schema = schemaNamed(name);
  return schema && intersect([schema, processSchema]);
}

/** Reads and validates the main file. Throws ConfigError. */
export async function loadMainConfig(path: string, env: Shell['env']): Promise<MainConfig> {
  return parseMainConfig(await readConfigFile(path), path, env);
}

/** `file` is the text's name in messages. Throws ConfigError. */
export function parseMainConfig(text: string, file: string, env: Shell['env']): MainConfig {
  const driverNames = [...driverTypes.map((type) => type.name), proxyName];
  const loaded = parseConfig<unknown>(text, file, mainSchemaNamed, { env, driverNames });
  const { host } = loaded.value as { readonly host?: HostOptions };
  if (loaded.driver === proxyName) return { kind: 'proxy', loaded: loaded as LoadedConfig<ProxyConfig>, host };
  const type = driverType(loaded.driver);
  if (type === undefined) throw new Error(`${loaded.driver} has a schema but no driver`);
  return { kind: 'direct', type, loaded, host };
}
