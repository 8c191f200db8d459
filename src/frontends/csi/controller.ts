/** The Controller service: messages in, domain calls, messages out. A group that the driver lacks is UNIMPLEMENTED. */
import { controllerCapabilities } from '../../core/capabilities.ts';
import type { Driver } from '../../core/driver.ts';
import * as csi from '../../generated/csi.js';
import {
  capabilitiesFrom,
  capabilityFrom,
  capacityFrom,
  pageFrom,
  requirementFrom,
  sourceFrom,
  topologyFrom,
} from './from-wire.ts';
import { type Handlers, needed } from './handler.ts';
import { snapshotTo, statusTo, volumeTo } from './to-wire.ts';

export function controllerHandlers(driver: Driver): Handlers<'Controller'> {
  return {
    ...volumeHandlers(driver),
    ...publicationHandlers(driver),
    ...snapshotHandlers(driver),
    ControllerGetCapabilities: async () => ({
      capabilities: controllerCapabilities(driver).map((name) => ({
        rpc: { type: csi.ControllerServiceCapability.RPC.Type[name] },
      })),
    }),
    async GetCapacity(call, request) {
      const capacity = await needed(driver.capacity, driver)(call, {
        capabilities: capabilitiesFrom(request.volumeCapabilities),
        parameters: request.parameters,
        topology: topologyFrom(request.accessibleTopology),
      });
      return {
        availableCapacity: capacity.availableBytes,
        ...(capacity.maximumVolumeBytes !== undefined && { maximumVolumeSize: { value: capacity.maximumVolumeBytes } }),
        ...(capacity.minimumVolumeBytes !== undefined && { minimumVolumeSize: { value: capacity.minimumVolumeBytes } }),
      };
    },
    async ControllerExpandVolume(call, request) {
      const expanded = await needed(driver.expansion, driver).expand(call, {
        volumeId: request.volumeId,
        capacity: capacityFrom(request.capacityRange),
        capability: request.volumeCapability ? capabilityFrom(request.volumeCapability) : undefined,
      });
      return { capacityBytes: expanded.capacityBytes, nodeExpansionRequired: expanded.nodeExpansionRequired };
    },
  };
}

function volumeHandlers(driver: Driver) {
  return {
    async CreateVolume(call, request) {
      const volume = await needed(driver.volumes, driver).create(call, {
        name: request.name,
        capacity: capacityFrom(request.capacityRange),
        capabilities: capabilitiesFrom(request.volumeCapabilities),
        parameters: request.parameters,
        mutableParameters: request.mutableParameters,
        source: sourceFrom(request.volumeContentSource),
        topology: requirementFrom(request.accessibilityRequirements),
      });
      return { volume: volumeTo(volume) };
    },
    async DeleteVolume(call, request) {
      await needed(driver.volumes, driver).delete(call, request.volumeId);
      return {};
    },
    async ValidateVolumeCapabilities(call, request) {
      const validation = await needed(driver.volumes, driver).validate(call, {
        volumeId: request.volumeId,
        context: request.volumeContext,
        capabilities: capabilitiesFrom(request.volumeCapabilities),
        parameters: request.parameters,
      });
      if (!validation.confirmed) return { message: validation.message };
      const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request;
      return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } };
    },
    async ListVolumes(call, request) {
      const page = await needed(driver.volumes?.list, driver)(call, pageFrom(request));
      return { entries: page.entries.map(statusTo), nextToken: page.nextToken ?? '' };
    },
    async ControllerGetVolume(call, request) {
      return statusTo(await needed(driver.volumes?.get, driver)(call, request.volumeId));
    },
    async ControllerModifyVolume(call, request) {
      await needed(driver.volumes?.modify, driver)(call, request.volumeId, request.mutableParameters);
      return {};
    },
  } satisfies Partial<Handlers<'Controller'>>;
}

function publicationHandlers(driver: Driver) {
  return {
    async ControllerPublishVolume(call, request) {
      const publishContext = await needed(driver.publication, driver).publish(call, {
        volumeId: request.volumeId,
        nodeId: request.nodeId,
        capability: capabilityFrom(request.volumeCapability),
        readonly: request.readonly,
        context: request.volumeContext,
      });
      return { publishContext: { ...publishContext } };
    },
    async ControllerUnpublishVolume(call, request) {
      await needed(driver.publication, driver).unpublish(call, request.volumeId, request.nodeId || undefined);
      return {};
    },
  } satisfies Partial<Handlers<'Controller'>>;
}

function snapshotHandlers(driver: Driver) {
  return {
    async CreateSnapshot(call, request) {
      const { name, sourceVolumeId, parameters } = request;
      const snapshot = await needed(driver.snapshots, driver).create(call, { name, sourceVolumeId, parameters });
      return { snapshot: snapshotTo(snapshot) };
    },
    async DeleteSnapshot(call, request) {
      await needed(driver.snapshots, driver).delete(call, request.snapshotId);
      return {};
    },
    async GetSnapshot(call, request) {
      return { snapshot: snapshotTo(await needed(driver.snapshots?.get, driver)(call, request.snapshotId)) };
    },
    async ListSnapshots(call, request) {
      const filter = {
        snapshotId: request.snapshotId || undefined,
        sourceVolumeId: request.sourceVolumeId || undefined,
      };
      const page = await needed(driver.snapshots?.list, driver)(call, filter, pageFrom(request));
      return {
        entries: page.entries.map((snapshot) => ({ snapshot: snapshotTo(snapshot) })),
        nextToken: page.nextToken ?? '',
      };
    },
  } satisfies Partial<Handlers<'Controller'>>;
}
