/**
 * Node calls: with the connection's own configuration where this node has its file, and else with the main file's `node.*`.
 *
 * A node need not have the connection files, since the volume context says how to attach; and what is mounted must come down again whatever
 * became of its connection.
 */
import type { CallContext } from '../core/call.ts';
import type { NodeOperations, WholeNodeOperations } from '../core/driver.ts';
import { asCallError } from '../core/errors.ts';
import type { VolumeContext } from '../core/volume.ts';
import { required } from './connection-error.ts';
import type { Connections } from './connections.ts';
import { decodeHandle } from './handle.ts';
import { inlineHandle } from './inline-volumes.ts';
import { type Lease, useLease } from './lease.ts';
import type { LocalNode } from './local-node.ts';

/** `generic` serves volumes without a connection file; it gets the whole handle as volume id. */
export function proxyNode(
  connections: Connections,
  localNode: LocalNode,
  generic: WholeNodeOperations,
): NodeOperations {
  async function routed<R extends { readonly volumeId: string; readonly context?: VolumeContext }, T>(
    call: CallContext,
    request: R,
    fallback: Fallback,
    choose: (node: NodeOperations) => ((call: CallContext, request: R) => Promise<T>) | undefined,
  ): Promise<T> {
    const inGeneral = () => required(choose(generic), general, 'such node operation')(call, request);
    const handle = decodeHandle('volume', request.volumeId) ?? (await inlineHandle(call, connections, request));
    const lease = handle && (await findFor(call, handle.connection, fallback));
    if (!lease) return inGeneral();
    return await useLease(lease, async ({ driver: { node } }) => {
      const own = node && choose(node);
      return own ? await own(call, { ...request, volumeId: handle.id }) : await inGeneral();
    });
  }

  async function findFor(call: CallContext, name: string, fallback: Fallback): Promise<Lease | undefined> {
    try {
      return await connections.find(call, name);
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
    // The proxy advertises staging, so drivers that publish without it are asked to stage too: nothing to do.
    stage: (call, request) => routed(call, request, 'none', (node) => node.stage ?? (async () => {})),
    unstage: (call, request) => routed(call, request, 'generic', (node) => node.unstage),
    publish: (call, request) => routed(call, request, 'none', (node) => node.publish),
    unpublish: (call, request) => routed(call, request, 'generic', (node) => node.unpublish),
    stats: (call, request) => routed(call, request, 'generic', (node) => node.stats),
    expand: (call, request) => routed(call, request, 'generic', (node) => node.expand),
  };
}

const general = { name: 'proxy' };

/** What to do for a connection whose file is there and was never good: fail, or do without it. */
type Fallback = 'none' | 'generic';
