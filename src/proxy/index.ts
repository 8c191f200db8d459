/**
 * The switchboard: one driver made of as many as there are files in a folder.
 *
 * It is a {@link Driver} like any other, which answers each call by choosing another driver and translating ids. The drivers behind it are made
 * and joined here; the proxy itself must not be joined again.
 */
import { advertisedFrom } from '../config/common.ts';
import { controllerCapabilities } from '../core/capabilities.ts';
import type { ControllerCapability } from '../core/capability-names.ts';
import type { Driver } from '../core/driver.ts';
import { type ActiveOperation, createOperations } from '../core/operations.ts';
import { within } from '../core/within.ts';
import { proxyCapacity } from './capacity.ts';
import { proxyCatalog } from './catalog.ts';
import type { ProxyConfig } from './config.ts';
import { required } from './connection-error.ts';
import { connectionMaker } from './connection-maker.ts';
import type { ConnectionStatus, Connections } from './connections.ts';
import { createConnections, listFolder } from './connections.ts';
import type { ProxyEnvironment } from './environment.ts';
import { requireHandle } from './handle.ts';
import { createLocalNode } from './local-node.ts';
import { proxyNode } from './node.ts';
import type { NodeTopologyExplanation } from './node-topology.ts';
import { proxyPublication } from './publication.ts';
import { proxySnapshots } from './snapshots.ts';
import { proxyVolumes } from './volumes.ts';

export interface ProxyDriver extends Driver {
  /** The connections as they were when they were last used or looked at. */
  connections(): readonly ConnectionStatus[];
  /** Looks at the files of all connections. Never rejects; takes as long as the folder's file system does. */
  lookAtConnections(): Promise<void>;
  /** Operations on this node in flight. Those of the controller are with their connections. */
  operations(): readonly ActiveOperation[];
  /** This node's topology and which rule produced what. Throws FAILED_PRECONDITION for rules that cannot work. */
  explainNodeTopology(): Promise<NodeTopologyExplanation>;
}

export function createProxy(config: ProxyConfig, environment: ProxyEnvironment): ProxyDriver {
  const { proxy: options } = config;
  const { joining, log } = environment;
  const localNode = createLocalNode(options.nodeId, options.nodeTopology, environment, log);
  const connections = createConnections({
    folder: options.configFolder,
    cacheTimeoutMinutes: options.cacheTimeoutMinutes,
    log,
    make: connectionMaker(config, environment, localNode),
    // Node calls exclude each other by path, and paths are the host's, not a connection's: they are joined below, for all connections together.
    joined: (connection, operations) => {
      const { node, ...controller } = connection.driver;
      return { ...connection, driver: { ...joining(controller, operations), ...(node && { node }) } };
    },
  });
  const nodeOperations = createOperations();
  const node = proxyNode(connections, localNode, environment.nodePlane(config.node, config.csi?.access_modes));
  const bare = { name: 'proxy', constrained: true, close: async () => {} };
  const groups = {
    ...bare,
    volumes: proxyVolumes(options, connections),
    snapshots: proxySnapshots(options, connections),
    expansion: proxyExpansion(connections),
    publication: proxyPublication(options, connections),
    capacity: (call, query) => proxyCapacity(options, connections, call, query),
    catalog: proxyCatalog(options, connections),
    node: joining({ ...bare, node }, nodeOperations).node ?? node,
  } satisfies Driver;
  const advertised = advertisedFrom(config);
  return {
    ...groups,
    advertised: { ...advertised, controller: advertised.controller ?? usualCapabilities(groups) },
    connections: () => connections.status(),
    lookAtConnections: () => connections.look(),
    operations: () => nodeOperations.active(),
    explainNodeTopology: () => localNode.explainTopology(),
    begin: () => connections.loadAll(),
    async probe() {
      await listFolder(options.configFolder);
    },
    async close() {
      await within(stopLimitMs, nodeOperations.stop());
      await connections.close();
    },
  };
}

const stopLimitMs = 5000;

/**
 * An orchestrator that is told of these asks for them with every volume, although few connections need them: they are there, and advertised
 * when the configuration lists them in `service.controller.capabilities.rpc`.
 */
const onlyWhenListed: ReadonlySet<ControllerCapability> = new Set([
  'PUBLISH_UNPUBLISH_VOLUME',
  'PUBLISH_READONLY',
  'MODIFY_VOLUME',
]);

function usualCapabilities(driver: Driver): readonly ControllerCapability[] {
  return controllerCapabilities(driver).filter((name) => !onlyWhenListed.has(name));
}

function proxyExpansion(connections: Connections): NonNullable<Driver['expansion']> {
  return {
    mode: 'ONLINE',
    async expand(call, request) {
      const { connection, id } = requireHandle('volume', request.volumeId);
      return connections.use(call, connection, ({ driver }) =>
        required(driver.expansion, driver, 'ControllerExpandVolume').expand(call, { ...request, volumeId: id }),
      );
    },
  };
}
