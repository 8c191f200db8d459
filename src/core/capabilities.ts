/** Capabilities that clients see, derived from the operations a driver has. */
import type { ControllerCapability, Expansion, NodeCapability, PluginCapability } from './capability-names.ts';
import type { Driver, NodeOperations } from './driver.ts';

export function pluginCapabilities(driver: Driver): readonly PluginCapability[] {
  if (driver.advertised?.plugin) return driver.advertised.plugin;
  return pick<PluginCapability>([
    ['CONTROLLER_SERVICE', driver.volumes !== undefined],
    ['VOLUME_ACCESSIBILITY_CONSTRAINTS', driver.constrained],
  ]);
}

export function expansionCapabilities(driver: Driver): readonly Expansion[] {
  if (driver.advertised?.expansion) return driver.advertised.expansion;
  return driver.expansion ? [driver.expansion.mode] : [];
}

export function controllerCapabilities(driver: Driver): readonly ControllerCapability[] {
  if (driver.advertised?.controller) return driver.advertised.controller;
  const { volumes, snapshots, publication } = driver;
  return pick<ControllerCapability>([
    ['CREATE_DELETE_VOLUME', volumes !== undefined],
    ['PUBLISH_UNPUBLISH_VOLUME', publication !== undefined],
    ['PUBLISH_READONLY', publication !== undefined],
    ['LIST_VOLUMES', volumes?.list !== undefined],
    ['GET_VOLUME', volumes?.get !== undefined],
    ['VOLUME_CONDITION', volumes?.reportsCondition === true],
    ['CLONE_VOLUME', volumes?.sources.has('volume') === true],
    ['MODIFY_VOLUME', volumes?.modify !== undefined],
    ['CREATE_DELETE_SNAPSHOT', snapshots !== undefined],
    ['LIST_SNAPSHOTS', snapshots?.list !== undefined],
    ['GET_SNAPSHOT', snapshots?.get !== undefined],
    ['GET_CAPACITY', driver.capacity !== undefined],
    ['EXPAND_VOLUME', driver.expansion !== undefined],
    ['SINGLE_NODE_MULTI_WRITER', volumes !== undefined],
  ]);
}

export function nodeCapabilities(driver: Driver): readonly NodeCapability[] {
  if (driver.advertised?.node) return driver.advertised.node;
  return driver.node ? derivedNodeCapabilities(driver.node) : [];
}

function derivedNodeCapabilities(node: NodeOperations): readonly NodeCapability[] {
  return pick<NodeCapability>([
    ['STAGE_UNSTAGE_VOLUME', node.stage !== undefined],
    ['GET_VOLUME_STATS', node.stats !== undefined],
    ['EXPAND_VOLUME', node.expand !== undefined],
    ['VOLUME_CONDITION', node.extra.has('VOLUME_CONDITION')],
    ['SINGLE_NODE_MULTI_WRITER', true],
    ['VOLUME_MOUNT_GROUP', node.extra.has('VOLUME_MOUNT_GROUP')],
  ]);
}

function pick<T>(rows: readonly (readonly [T, boolean])[]): readonly T[] {
  return rows.filter(([, has]) => has).map(([name]) => name);
}
