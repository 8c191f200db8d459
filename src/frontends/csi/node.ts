/** The Node service. */
import { nodeCapabilities } from '../../core/capabilities.ts';
import type { Driver } from '../../core/driver.ts';
import * as csi from '../../generated/csi.js';
import { capabilityFrom, capacityFrom } from './from-wire.ts';
import { type Handlers, needed } from './handler.ts';
import { conditionTo, topologyTo, usageTo } from './to-wire.ts';

export function nodeHandlers(driver: Driver): Handlers<'Node'> {
  const node = () => needed(driver.node, driver);
  return {
    NodeGetCapabilities: async () => ({
      capabilities: nodeCapabilities(driver).map((name) => ({
        rpc: { type: csi.NodeServiceCapability.RPC.Type[name] },
      })),
    }),
    async NodeGetInfo(call) {
      const info = await node().info(call);
      return {
        nodeId: info.nodeId,
        ...(info.maxVolumes !== undefined && { maxVolumesPerNode: info.maxVolumes }),
        ...(info.topology && { accessibleTopology: topologyTo(info.topology) }),
      };
    },
    async NodeStageVolume(call, request) {
      await needed(driver.node?.stage, driver)(call, {
        volumeId: request.volumeId,
        stagingPath: request.stagingTargetPath,
        capability: capabilityFrom(request.volumeCapability),
        context: request.volumeContext,
        publishContext: request.publishContext,
      });
      return {};
    },
    async NodeUnstageVolume(call, request) {
      await needed(driver.node?.unstage, driver)(call, {
        volumeId: request.volumeId,
        stagingPath: request.stagingTargetPath,
      });
      return {};
    },
    async NodePublishVolume(call, request) {
      await node().publish(call, {
        volumeId: request.volumeId,
        targetPath: request.targetPath,
        stagingPath: request.stagingTargetPath || undefined,
        capability: capabilityFrom(request.volumeCapability),
        readonly: request.readonly,
        context: request.volumeContext,
        publishContext: request.publishContext,
      });
      return {};
    },
    async NodeUnpublishVolume(call, request) {
      await node().unpublish(call, { volumeId: request.volumeId, targetPath: request.targetPath });
      return {};
    },
    async NodeGetVolumeStats(call, request) {
      const found = await needed(driver.node?.stats, driver)(call, {
        volumeId: request.volumeId,
        volumePath: request.volumePath,
        stagingPath: request.stagingTargetPath || undefined,
      });
      return {
        usage: found.usage.map(usageTo),
        ...(found.condition && { volumeCondition: conditionTo(found.condition) }),
      };
    },
    async NodeExpandVolume(call, request) {
      const expanded = await needed(driver.node?.expand, driver)(call, {
        volumeId: request.volumeId,
        volumePath: request.volumePath,
        stagingPath: request.stagingTargetPath || undefined,
        capacity: capacityFrom(request.capacityRange),
        capability: request.volumeCapability ? capabilityFrom(request.volumeCapability) : undefined,
      });
      return expanded.capacityBytes === undefined ? {} : { capacityBytes: expanded.capacityBytes };
    },
  };
}
