/** Capabilities that clients see, derived from the operations a driver has (CSI spec: PluginCapability, ControllerServiceCapability, NodeServiceCapability). */
import type { Driver, NodeOperations } from './driver.ts';

export const pluginCapabilityNames = ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'] as const;
export type PluginCapability = (typeof pluginCapabilityNames)[number];

export const expansionNames = ['ONLINE', 'OFFLINE'] as const;
export type Expansion = (typeof expansionNames)[number];

export const controllerCapabilityNames = [
  'CREATE_DELETE_VOLUME',
  'PUBLISH_UNPUBLISH_VOLUME',
  'LIST_VOLUMES',
  'GET_CAPACITY',
  'CREATE_DELETE_SNAPSHOT',
  'LIST_SNAPSHOTS',
  'CLONE_VOLUME',
  'PUBLISH_READONLY',
  'EXPAND_VOLUME',
  'LIST_VOLUMES_PUBLISHED_NODES',
  'VOLUME_CONDITION',
  'GET_VOLUME',
  'SINGLE_NODE_MULTI_WRITER',
  'MODIFY_VOLUME',
  'GET_SNAPSHOT',
] as const;
export type ControllerCapability = (typeof controllerCapabilityNames)[number];

export const nodeCapabilityNames = [
  'STAGE_UNSTAGE_VOLUME',
  'GET_VOLUME_STATS',
  'EXPAND_VOLUME',
  'VOLUME_CONDITION',
  'SINGLE_NODE_MULTI_WRITER',
  'VOLUME_MOUNT_GROUP',
] as const;
export type NodeCapability = (typeof nodeCapabilityNames)[number];

/** Lists from `service.*.capabilities`; one that is present replaces the derived one entirely. */
export interface AdvertisedCapabilities {
  readonly plugin?: readonly PluginCapability[] | undefined;
  readonly expansion?: readonly Expansion[] | undefined;
  readonly controller?: readonly ControllerCapability[] | undefined;
  readonly node?: readonly NodeCapability[] | undefined;
}

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
