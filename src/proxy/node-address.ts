/** What a connection's driver is told as the node id: the one piece of the proxy's node id that its storage understands. */
import type { ConnectionOptions } from '../config/common.ts';
import { CallError } from '../core/errors.ts';
import type { NodeIdOptions } from './config.ts';
import { shown } from './handle.ts';
import type { NodeIdentity, NodeIdentityPart } from './node-identity.ts';
import { decodeNodeId } from './node-identity.ts';

type AddressOptions = Pick<ConnectionOptions, 'nodeIdType' | 'nodeIdMap' | 'nodeIdTemplate'>;

/**
 * The part that `nodeIdType` names (the node's name if it names none), or `nodeIdTemplate` with its `{part}`s filled in; then, when
 * `nodeIdMap` has an entry for that, the entry.
 *
 * Throws NOT_FOUND for a node id that no node of this plugin has, INVALID_ARGUMENT when it lacks a part that this connection needs.
 */
export function nodeAddress(nodeIdOptions: NodeIdOptions, options: AddressOptions, nodeId: string): string {
  const identity = decodeNodeId(nodeIdOptions, nodeId);
  if (!identity) throw noSuchNode(nodeId);
  const address =
    options.nodeIdTemplate === undefined
      ? partOf(identity, options.nodeIdType ?? 'nodeName', nodeId)
      : options.nodeIdTemplate.replace(placeholder, (_all, part: NodeIdentityPart) => partOf(identity, part, nodeId));
  const { nodeIdMap } = options;
  return nodeIdMap && Object.hasOwn(nodeIdMap, address) ? (nodeIdMap[address] ?? address) : address;
}

export function noSuchNode(nodeId: string): CallError {
  return new CallError(
    'NOT_FOUND',
    `there is no node ${shown(nodeId)}: node ids of this plugin look like n=<name>/h=<host name>/…`,
  );
}

const placeholder = /\{(nodeName|hostname|iqn|nqn)\}/g;

function partOf(identity: NodeIdentity, part: NodeIdentityPart, nodeId: string): string {
  const value = identity[part];
  if (value !== undefined) return value;
  throw new CallError(
    'INVALID_ARGUMENT',
    `it needs the ${part} of the node, which the node id ${shown(nodeId)} does not have; set proxy.nodeId.parts.${part} to true ` +
      'in the main file of all nodes',
  );
}
