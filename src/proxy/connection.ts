/** A connection: a driver and how the proxy places and addresses its volumes. */
import type { ConnectionOptions } from '../config/common.ts';
import type { Problem } from '../config/problem.ts';
import type { Driver } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import type { DriverEnvironment, DriverType } from '../drivers/type.ts';
import type { NodeTopologyOptions } from './config.ts';
import { idBytesBehind } from './handle.ts';
import { problemWithKey, problemWithValue } from './labels.ts';
import type { NodeView } from './local-node.ts';
import type { Place } from './placement.ts';
import { placesFrom } from './placement.ts';

export interface Connection {
  readonly name: string;
  readonly driver: Driver;
  /** Undefined when the file has no topology: the driver alone knows where its volumes can be reached from. */
  readonly places: readonly Place[] | undefined;
  /** `proxy.perDriver` of its file. */
  readonly options: ConnectionOptions;
}

/** A connection file that is in order. */
export interface ParsedConnection {
  readonly type: DriverType;
  /** The validated document: the type's own options. */
  readonly options: unknown;
  readonly warnings: readonly Problem[];
}

/** Reads the text of a connection file; `file` is its name in messages. Throws ConfigError. */
export type ParseConnection = (text: string, file: string) => ParsedConnection;

/** Makes the connection's driver and reads its topology. Throws FAILED_PRECONDITION for settings that cannot work. */
export function makeConnection(
  name: string,
  parsed: ParsedConnection,
  common: Pick<DriverEnvironment, 'csiName' | 'nodeName' | 'stateDirectory' | 'run' | 'ssh' | 'log' | 'copies'>,
  node: NodeView,
  topologyPrefix: string,
): Connection {
  const options = perDriver(parsed.options);
  const places = options.topology?.length ? placesFrom(topologyPrefix, options.topology) : undefined;
  for (const place of places ?? []) assertLegal(place);
  const environment: DriverEnvironment = {
    ...common,
    log: common.log.with({ connection: name }),
    connection: name,
    maxIdBytes: idBytesBehind(name),
    // Only drivers whose volumes live on this node ask. The others must work where this node's identity cannot be told.
    get nodeId() {
      return node.nodeId();
    },
    get nodeTopology() {
      return node.topology();
    },
  };
  return { name, driver: createDriver(parsed, environment), places, options };
}

/** Why volumes of this connection may be looked for on the wrong node, or undefined. */
export function placementDoubt({ driver, places }: Connection, nodeTopology: NodeTopologyOptions): string | undefined {
  if (!driver.constrained || places || nodeTopology.type !== 'cluster') return undefined;
  return (
    `volumes of ${driver.name} are on one node, but with proxy.nodeTopology.type "cluster" all nodes look the same; ` +
    'in a cluster of several nodes use type "node"'
  );
}

function createDriver({ type, options }: ParsedConnection, environment: DriverEnvironment): Driver {
  try {
    return type.create(options, environment);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CallError('FAILED_PRECONDITION', message, { cause: error });
  }
}

function perDriver(options: unknown): ConnectionOptions {
  return (options as { readonly proxy?: { readonly perDriver?: ConnectionOptions } }).proxy?.perDriver ?? {};
}

function assertLegal(place: Place): void {
  for (const [key, value] of Object.entries(place.segments)) {
    const problem = problemWithKey(key) ?? problemWithValue(value);
    if (problem !== undefined) throw new CallError('FAILED_PRECONDITION', `proxy.perDriver.topology: ${problem}`);
  }
}
