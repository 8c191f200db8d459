/** What `switchboard check` and the start say about a folder of connections. No driver touches its storage. */
import { join } from 'node:path';
import { ConfigError, type Problem } from '../config/problem.ts';
import { readConfigFile } from '../config/read-file.ts';
import { asCallError } from '../core/errors.ts';
import type { ProxyConfig } from './config.ts';
import { makeConnection, placementDoubt } from './connection.ts';
import { connectionParser } from './connection-maker.ts';
import { compareNames, connectionFileEnding, connectionNameOf } from './connection-name.ts';
import { listFolder } from './connections.ts';
import type { ProxyEnvironment } from './environment.ts';
import { createLocalNode } from './local-node.ts';
import { compileRules } from './node-topology.ts';
import { type PlacedConnection, placeConflicts } from './place-conflicts.ts';

export interface ConnectionReport {
  readonly name: string;
  readonly file: string;
  /** Undefined when the file does not get that far. */
  readonly driver?: string | undefined;
  /** Errors make the connection unusable, warnings do not. */
  readonly problems: readonly Problem[];
}

export interface FolderReport {
  readonly connections: readonly ConnectionReport[];
  /** What concerns the main file or the folder as a whole. */
  readonly problems: readonly Problem[];
}

/** Reads every connection file as the proxy would. `mainFile` is the main file's name in messages. Never rejects. */
export async function checkConnections(
  config: ProxyConfig,
  environment: ProxyEnvironment,
  mainFile: string,
): Promise<FolderReport> {
  const { configFolder, defaultConnection, nodeTopology } = config.proxy;
  const problems: Problem[] = [];
  const note = (severity: Problem['severity'], path: string, message: string, file = mainFile) =>
    problems.push({ severity, file, line: 0, column: 0, path, message });

  await compileRules(nodeTopology).catch((error) => note('error', 'proxy.nodeTopology', asCallError(error).message));
  if (nodeTopology.type === 'zone' && nodeTopology.rules.length === 0) {
    note('warning', 'proxy.nodeTopology', `type ${nodeTopology.type} without rules gives nodes no topology`);
  }
  if (nodeTopology.type !== 'zone' && nodeTopology.rules.length > 0) {
    note(
      'warning',
      'proxy.nodeTopology',
      `the rules have no effect with type ${nodeTopology.type}; write type: custom`,
    );
  }
  const files = await listFolder(configFolder).catch((error) => {
    note('error', 'proxy.configFolder', asCallError(error).message);
    return [];
  });
  for (const file of files) {
    const reason = whyIgnored(file);
    if (reason !== undefined) note('warning', '', `ignored: ${reason}`, join(configFolder, file));
  }
  const names = files.flatMap((file) => connectionNameOf(file) ?? []).toSorted(compareNames);
  if (defaultConnection !== undefined && !names.includes(defaultConnection)) {
    note('warning', 'proxy.defaultConnection', `there is no connection "${defaultConnection}"`);
  }
  const placed: PlacedConnection[] = [];
  const reports = await Promise.all(names.map((name) => checkConnection(config, environment, name, placed)));
  const conflicts = placeConflicts(placed);
  const connections = reports.map((report) => {
    const more = conflicts.filter(({ file }) => file === report.file);
    return more.length > 0 ? { ...report, problems: [...report.problems, ...more] } : report;
  });
  return { connections, problems };
}

/** Names that begin with a dot are Kubernetes' own, or an editor's; they are nobody's mistake. */
function whyIgnored(file: string): string | undefined {
  if (file.startsWith('.') || connectionNameOf(file) !== undefined) return undefined;
  if (/\.yml$/i.test(file)) return `connection files end in ${connectionFileEnding}`;
  return file.endsWith(connectionFileEnding)
    ? 'a connection name has at most 63 letters, digits, ".", "_" and "-", and begins with a letter or digit'
    : undefined;
}

async function checkConnection(
  config: ProxyConfig,
  environment: ProxyEnvironment,
  name: string,
  placed: PlacedConnection[],
): Promise<ConnectionReport> {
  const file = join(config.proxy.configFolder, name + connectionFileEnding);
  const { nodeId, nodeTopology } = config.proxy;
  let driver: string | undefined;
  const whole = { file, line: 0, column: 0, path: '' };
  let problems: readonly Problem[] = [];
  try {
    const parsed = connectionParser(config, environment)(await readConfigFile(file), file);
    driver = parsed.type.name;
    problems = parsed.warnings;
    const place = parsed.type.sharePlace?.(parsed.options);
    if (place) placed.push({ name, file, ...place });
    await parsed.type.prepare?.(parsed.options);
    const localNode = createLocalNode(nodeId, nodeTopology, environment, environment.log);
    const made = makeConnection(name, parsed, environment, await localNode.view(), nodeTopology.prefix);
    const doubt = placementDoubt(made, nodeTopology);
    if (doubt !== undefined) problems = [...problems, { ...whole, severity: 'warning', message: doubt }];
    await made.driver.close();
  } catch (error) {
    problems = [...problems, ...problemsOf(error, file)];
  }
  return { name, file, driver, problems };
}

function problemsOf(error: unknown, file: string): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems;
  return [{ severity: 'error', file, line: 0, column: 0, path: '', message: asCallError(error).message }];
}
