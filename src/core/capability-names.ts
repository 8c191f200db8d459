/** The capabilities of the CSI specification by name (PluginCapability, ControllerServiceCapability, NodeServiceCapability). */
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
