/** Attaching volumes to nodes on the storage's side, for the connections whose storage wants that. */
import type { PublicationOperations } from '../core/driver.ts';
import type { ProxyOptions } from './config.ts';
import type { Connections } from './connections.ts';
import { decodeHandle, requireHandle } from './handle.ts';
import { nodeAddress, noSuchNode } from './node-address.ts';
import { looksLikeNodeId } from './node-identity.ts';

/** Where a driver has nothing to do, success: the orchestrator asks for every volume or for none. */
export function proxyPublication(options: ProxyOptions, connections: Connections): PublicationOperations {
  return {
    async publish(call, request) {
      const { connection, id } = requireHandle('volume', request.volumeId);
      if (!looksLikeNodeId(request.nodeId)) throw noSuchNode(request.nodeId);
      return connections.use(call, connection, async (one) => {
        const { publication } = one.driver;
        if (!publication) return {};
        const nodeId = nodeAddress(options.nodeId, one.options, request.nodeId);
        return publication.publish(call, { ...request, volumeId: id, nodeId });
      });
    },
    async unpublish(call, volumeId, nodeId) {
      const handle = decodeHandle('volume', volumeId);
      if (!handle) return;
      await connections.use(call, handle.connection, async (one) => {
        const { publication } = one.driver;
        if (!publication) return;
        const address = nodeId === undefined ? undefined : nodeAddress(options.nodeId, one.options, nodeId);
        await publication.unpublish(call, handle.id, address);
      });
    },
  };
}
