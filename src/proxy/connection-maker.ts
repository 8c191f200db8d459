/** From the text of a connection file to the connection. */
import { parseConfig } from '../config/load.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import type { ProxyConfig } from './config.ts';
import type { Connection, ParseConnection } from './connection.ts';
import { makeConnection, placementDoubt } from './connection.ts';
import type { ProxyEnvironment } from './environment.ts';
import type { LocalNode } from './local-node.ts';

/** Parses connection files on top of the main file: its `service`, `node` and `csi` count where a connection says nothing. */
export function connectionParser(config: ProxyConfig, environment: ProxyEnvironment): ParseConnection {
  const { service, node, csi } = config;
  const { driverType, driverNames, env } = environment;
  return (text, file) => {
    const schemaFor = (name: string) => {
      if (name === 'proxy') throw behindItself(file);
      return driverType(name)?.schema;
    };
    const loaded = parseConfig(text, file, schemaFor, { env, under: { service, node, csi }, driverNames });
    const type = driverType(loaded.driver);
    if (!type) throw behindItself(file);
    return { type, options: loaded.value, warnings: loaded.warnings };
  };
}

/** Makes connections for {@link createConnections}. */
export function connectionMaker(config: ProxyConfig, environment: ProxyEnvironment, localNode: LocalNode) {
  const parse = connectionParser(config, environment);
  return async (name: string, text: string, file: string): Promise<Connection> => {
    const { nodeTopology } = config.proxy;
    const parsed = parse(text, file);
    await parsed.type.prepare?.(parsed.options);
    const made = makeConnection(name, parsed, environment, await localNode.view(), nodeTopology.prefix);
    const warnings = [...parsed.warnings.map(formatProblem), placementDoubt(made, nodeTopology) ?? []].flat();
    for (const warning of warnings) environment.log.warn(warning, { connection: name });
    return made;
  };
}

function behindItself(file: string): ConfigError {
  const message = 'a connection cannot be a proxy: give it the driver of its storage';
  return new ConfigError([{ severity: 'error', file, line: 0, column: 0, path: 'driver', message }]);
}
