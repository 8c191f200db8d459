/**
 * Node calls: with the connection's own configuration where this node has its file, and else with the main file's `node.*`.
 *
 * A node need not have the connection files, since the volume context says how to attach; and what is mounted must come down again whatever
 * became of its connection.
 */
import type { CallContext } from '../core/call.ts';
import type { NodeOperations } from '../core/driver.ts';
import { asCallError } from '../core/errors.ts';
import { namingConnection } from './connection-error.ts';
import type { Connections, Lease } from './connections.ts';
import { decodeHandle } from './handle.ts';
import type { LocalNode } from './local-node.ts';

/** `generic` serves volumes without a connection file; it gets the whole handle as volume id. */
export function proxyNode(
  connections: Connections,
  localNode: LocalNode,
  generic: Required<NodeOperations>,
): Required<NodeOperations> {
  async function routed<T>(call: CallContext, volumeId: string, fallback: Fallback, work: Work<T>): Promise<T> {
    const handle = decodeHandle('volume', volumeId);
    const lease = handle && (await findFor(call, handle.connection, fallback));
    if (!lease) return work(generic, volumeId);
    try {
      return await work(lease.connection.driver.node ?? generic, lease.connection.driver.node ? handle.id : volumeId);
    } catch (error) {
      throw namingConnection(handle.connection, error);
    } finally {
      lease.release();
    }
  }

  async function findFor(call: CallContext, name: string, fallback: Fallback): Promise<Lease | undefined> {
    try {
      const lease = await connections.find(call, name);
      call.label('connection', name);
      return lease;
    } catch (error) {
      if (fallback === 'none' || call.signal.aborted) throw error;
      call.log.warn('the connection cannot be used, so its volume is handled in the general way', {
        error: asCallError(error).message,
      });
      return undefined;
    }
  }

  return {
    extra: generic.extra,
    info: () => localNode.info(),
    stage: (call, request) =>
      routed(call, request.volumeId, 'none', async (node, volumeId) => {
        // The proxy advertises staging, so drivers that publish without it are asked to stage too.
        await node.stage?.(call, { ...request, volumeId });
      }),
    unstage: (call, request) =>
      routed(call, request.volumeId, 'generic', (node, volumeId) =>
        (node.unstage ?? generic.unstage)(call, { ...request, volumeId }),
      ),
    publish: (call, request) =>
      routed(call, request.volumeId, 'none', (node, volumeId) => node.publish(call, { ...request, volumeId })),
    unpublish: (call, request) =>
      routed(call, request.volumeId, 'generic', (node, volumeId) => node.unpublish(call, { ...request, volumeId })),
    stats: (call, request) =>
      routed(call, request.volumeId, 'generic', (node, volumeId) =>
        (node.stats ?? generic.stats)(call, { ...request, volumeId }),
      ),
    expand: (call, request) =>
      routed(call, request.volumeId, 'generic', (node, volumeId) =>
        (node.expand ?? generic.expand)(call, { ...request, volumeId }),
      ),
  };
}

/** What to do for a connection whose file is there and was never good: fail, or do without it. */
type Fallback = 'none' | 'generic';

type Work<T> = (node: NodeOperations, volumeId: string) => Promise<T>;
