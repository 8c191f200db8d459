/** The files that a check is about, and what is wrong with each. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type GenericSchema, parse } from 'valibot';
import { parseConfig } from '../config/load.ts';
import { ConfigError, type Problem } from '../config/problem.ts';
import { readConfigFile } from '../config/read-file.ts';
import { redacted } from '../config/secret.ts';
import { CallError } from '../core/errors.ts';
import { silentLogger } from '../core/logger.ts';
import { checkConnections } from '../proxy/check.ts';
import { type ProxyConfig, proxySchema } from '../proxy/config.ts';
import { idleEnvironment } from './driver-from-example.ts';
import { directEnvironment, type ProcessFacts, proxyEnvironment } from './environment.ts';
import { hostName } from './host-name.ts';
import { type DirectMain, loadMainConfig, mainSchemaNamed, schemaNamed } from './main-config.ts';
import type { Shell } from './shell.ts';

export interface CheckedFile {
  readonly file: string;
  /** Undefined when the file cannot be read that far. */
  readonly driver?: string | undefined;
  /** The connection's name, for files of a folder of connections. */
  readonly connection?: string | undefined;
  readonly problems: readonly Problem[];
  /** As written, variables expanded and what it inherits merged in; without secrets. Undefined when it cannot be read that far. */
  readonly config?: unknown;
}

/** A folder that a main file among the paths brings along is checked with that file, so that it is seen with what it inherits. */
export async function checkPaths(paths: readonly string[], env: Shell['env']): Promise<readonly CheckedFile[]> {
  const nameOfHost = await hostName(env);
  const facts: ProcessFacts = {
    csiName: idleEnvironment.csiName,
    nodeName: env.CSI_NODE_ID || nameOfHost,
    hostName: nameOfHost,
    env,
    run: idleEnvironment.run,
    log: silentLogger,
  };
  const folders: string[] = [];
  const checked: CheckedFile[] = [];
  for (const path of paths) {
    if (await isFolder(path)) folders.push(path);
    else checked.push(...(await checkFile(path, facts)));
  }
  for (const folder of folders) {
    // What its main file will say of nodes is not known: this is the choice that fits every driver.
    const config = parse(proxySchema, {
      driver: 'proxy',
      proxy: { configFolder: folder, nodeTopology: { type: 'node' } },
    });
    checked.push(...(await checkFolder(config, folder, facts)));
  }
  const first = new Map(checked.toReversed().map((file) => [resolve(file.file), file]));
  return [...first.values()].toReversed().filter((file) => file.driver !== undefined || file.problems.length > 0);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function checkFile(file: string, facts: ProcessFacts): Promise<readonly CheckedFile[]> {
  try {
    const main = await loadMainConfig(file, facts.env);
    const { driver, warnings, input } = main.loaded;
    const shown = { file, driver, config: redactedBy(mainSchemaNamed(driver), input) };
    if (main.kind === 'direct') return [{ ...shown, problems: [...warnings, ...(await tryDriver(main, file, facts))] }];
    const [whole, ...connections] = await checkFolder(main.loaded.value, file, facts);
    return [{ ...shown, problems: [...warnings, ...(whole?.problems ?? [])] }, ...connections];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [{ file, problems: error.problems }];
  }
}

/** The first of the results is about the main file or the folder as a whole. */
async function checkFolder(config: ProxyConfig, mainFile: string, facts: ProcessFacts): Promise<CheckedFile[]> {
  const report = await checkConnections(config, proxyEnvironment(facts), mainFile);
  const files = report.connections.map(async ({ name, ...file }) => ({
    ...file,
    connection: name,
    config: await connectionInput(file.file, config, facts),
  }));
  return [{ file: mainFile, problems: report.problems }, ...(await Promise.all(files))];
}

/** Undefined when the file cannot be used: its problems say why. */
async function connectionInput(file: string, { service, node, csi }: ProxyConfig, { env }: ProcessFacts) {
  try {
    const loaded = parseConfig(await readConfigFile(file), file, schemaNamed, { env, under: { service, node, csi } });
    return redactedBy(schemaNamed(loaded.driver), loaded.input);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

function redactedBy(schema: GenericSchema | undefined, input: unknown): unknown {
  return schema && redacted(schema, input);
}

/** Makes the driver as a server would: some settings only show together that they cannot work. */
async function tryDriver(main: DirectMain, file: string, facts: ProcessFacts): Promise<readonly Problem[]> {
  try {
    await main.type.prepare?.(main.loaded.value as never);
    await main.type.create(main.loaded.value as never, directEnvironment(facts)).close();
    return [];
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return [{ severity: 'error', file, line: 0, column: 0, path: '', message: error.message }];
  }
}
