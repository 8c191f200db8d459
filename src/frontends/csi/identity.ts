/** The Identity service. */
import { expansionCapabilities, pluginCapabilities } from '../../core/capabilities.ts';
import type { Driver } from '../../core/driver.ts';
import * as csi from '../../generated/csi.js';
import type { Handlers } from './handler.ts';
import type { ServiceOptions } from './options.ts';

export function identityHandlers(driver: Driver, options: ServiceOptions): Handlers<'Identity'> {
  return {
    GetPluginInfo: async () => ({
      name: options.pluginName,
      vendorVersion: options.version,
      manifest: { commit: options.commit, driver: driver.name },
    }),
    GetPluginCapabilities: async () => ({ capabilities: capabilityMessages(driver, options) }),
    Probe: async (call) => {
      await driver.probe?.(call);
      return { ready: { value: true } };
    },
  };
}

function capabilityMessages(driver: Driver, { modes }: ServiceOptions): csi.Init<csi.PluginCapability>[] {
  const services = pluginCapabilities(driver)
    .filter((name) => name !== 'CONTROLLER_SERVICE' || modes.has('controller'))
    .map((name) => ({ service: { type: csi.PluginCapability.Service.Type[name] } }));
  const expansion = expansionCapabilities(driver).map((name) => ({
    volumeExpansion: { type: csi.PluginCapability.VolumeExpansion.Type[name] },
  }));
  return [...services, ...expansion];
}
