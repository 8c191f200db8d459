/** What a plugin says it can do, by the names of the CSI specification. */
import { ControllerServiceCapability, NodeServiceCapability, PluginCapability } from '../../generated/csi.js';
import { services } from '../../generated/services.js';
import type { Session } from './session.ts';

const { Identity, Controller, Node } = services;

export interface ShownCapabilities {
  readonly plugin: readonly string[];
  readonly expansion: readonly string[];
  readonly controller: readonly string[];
  readonly node: readonly string[];
}

export async function pluginCapabilities(session: Session): Promise<Pick<ShownCapabilities, 'plugin' | 'expansion'>> {
  const { capabilities } = await session.call('asking for capabilities', Identity.GetPluginCapabilities, {});
  return {
    plugin: capabilities.flatMap(({ service }) => named(PluginCapability.Service.Type, service?.type)),
    expansion: capabilities.flatMap((one) => named(PluginCapability.VolumeExpansion.Type, one.volumeExpansion?.type)),
  };
}

export async function controllerCapabilities(session: Session): Promise<readonly string[]> {
  const { capabilities } = await session.call('asking for capabilities', Controller.ControllerGetCapabilities, {});
  return capabilities.flatMap(({ rpc }) => named(ControllerServiceCapability.RPC.Type, rpc?.type));
}

export async function nodeCapabilities(session: Session): Promise<readonly string[]> {
  const { capabilities } = await session.call('asking for capabilities', Node.NodeGetCapabilities, {});
  return capabilities.flatMap(({ rpc }) => named(NodeServiceCapability.RPC.Type, rpc?.type));
}

/** UNKNOWN (zero) means nothing; a value newer than this client is shown by its number. */
function named(names: { readonly [id: number]: string | undefined }, value: number | undefined): string[] {
  return value ? [names[value] ?? String(value)] : [];
}
