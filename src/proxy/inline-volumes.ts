/** Volumes without a handle: those that a connection makes for one publication, under an id that the orchestrator drew (ephemeral inline volumes). */
import type { CallContext } from '../core/call.ts';
import { asCallError } from '../core/errors.ts';
import type { VolumeContext } from '../core/volume.ts';
import { isConnectionName } from './connection-name.ts';
import type { Connections } from './connections.ts';
import type { Handle } from './handle.ts';

/** The kubelet's: `csi-` and a SHA-256 of the pod, the volume and the driver. */
const drawnId = /^csi-[0-9a-f]{64}$/;

/**
 * The connection of such a volume: the one that its attributes name, when it is published, and else the one that knows it. Undefined when no
 * connection does: it is a volume of the old kind, which this node serves without any.
 */
export async function inlineHandle(
  call: CallContext,
  connections: Connections,
  request: { readonly volumeId: string; readonly context?: VolumeContext },
): Promise<Handle | undefined> {
  const { volumeId: id, context } = request;
  if (!drawnId.test(id)) return undefined;
  const named = context?.connection;
  if (named !== undefined && isConnectionName(named)) return { connection: named, id };
  if (context) return undefined;
  for (const connection of await connections.names().catch(() => [])) {
    if (await owns(call, connections, connection, id)) return { connection, id };
  }
  return undefined;
}

/** One connection that cannot be asked must not keep the volumes of others mounted. */
async function owns(call: CallContext, connections: Connections, name: string, id: string): Promise<boolean> {
  try {
    const lease = await connections.find(call, name);
    try {
      return (await lease?.connection.driver.node?.owns?.(call, id)) ?? false;
    } finally {
      lease?.release();
    }
  } catch (error) {
    call.log.warn('a connection cannot tell whether a volume is its own', {
      connection: name,
      error: asCallError(error).message,
    });
    return false;
  }
}
