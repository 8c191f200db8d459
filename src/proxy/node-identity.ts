/**
 * The node id: everything that some connection's driver may need to know of a node, in one string that the orchestrator carries from the node
 * to the controller.
 *
 * `n=<node name>/h=<host name>/i<short>=<rest of the iqn>/v<short>=<rest of the nqn>`, of which the configuration chooses the parts. The long
 * beginnings that iqns and nqns share are replaced by short names, since an id has 256 bytes at most (CSI spec, `NodeGetInfoResponse.node_id`).
 */
import { CallError } from '../core/errors.ts';
import type { NodeIdOptions } from './config.ts';
import { hasControlCharacters } from './control-characters.ts';

export interface NodeIdentity {
  readonly nodeName?: string | undefined;
  readonly hostname?: string | undefined;
  readonly iqn?: string | undefined;
  readonly nqn?: string | undefined;
}

export type NodeIdentityPart = keyof NodeIdentity;

export const maxNodeIdBytes = 256;

/** Throws FAILED_PRECONDITION, naming the parts, for an identity that cannot be written down. */
export function encodeNodeId(options: NodeIdOptions, identity: NodeIdentity): string {
  const wanted = (Object.keys(letters) as NodeIdentityPart[]).filter((part) => options.parts[part]);
  const written = wanted.map((part) => writePart(options, part, identity[part]));
  const id = written.join('/');
  if (Buffer.byteLength(id) <= maxNodeIdBytes) return id;
  const lengths = written.map((text, index) => `${wanted[index]} ${Buffer.byteLength(text)}`).join(', ');
  throw unusable(
    `the node id has ${Buffer.byteLength(id)} bytes (${lengths}), but at most ${maxNodeIdBytes} are allowed; leave parts out ` +
      'in proxy.nodeId.parts, or list longer prefixes in proxy.nodeId.iqnPrefix and nqnPrefix',
  );
}

/**
 * The parts of a node id, or undefined for text that is no node id of this format. Throws FAILED_PRECONDITION for a short name that this
 * configuration does not have: the node runs with another one.
 */
export function decodeNodeId(options: NodeIdOptions, id: string): NodeIdentity | undefined {
  if (id.length > maxNodeIdBytes || hasControlCharacters(id)) return undefined;
  const identity: { -readonly [part in NodeIdentityPart]?: string } = {};
  for (const text of id.split('/')) {
    const found = partPattern.exec(text);
    if (!found) return undefined;
    const [, plain, shortened, shortName = '', rest = ''] = found;
    const part = partByLetter.get(plain ?? shortened ?? '');
    if (part === undefined || identity[part] !== undefined) return undefined;
    identity[part] = shortened === undefined ? rest : lengthen(options, part, shortName, rest);
  }
  return identity;
}

/** Whether a node of some configuration of this plugin can have this id. */
export function looksLikeNodeId(id: string): boolean {
  return id.length <= maxNodeIdBytes && id.split('/').every((text) => partPattern.test(text));
}

const partPattern = /^(?:([nh])|([iv])([0-9a-z]+))=(.+)$/;

const letters: Readonly<Record<NodeIdentityPart, string>> = { nodeName: 'n', hostname: 'h', iqn: 'i', nqn: 'v' };

const partByLetter = new Map(Object.entries(letters).map(([part, letter]) => [letter, part as NodeIdentityPart]));

function writePart(options: NodeIdOptions, part: NodeIdentityPart, value: string | undefined): string {
  if (!value) throw unusable(`the node id needs the ${part} of this node, which is empty (proxy.nodeId.parts.${part})`);
  if (value.includes('/') || hasControlCharacters(value)) {
    throw unusable(`the ${part} of this node, ${JSON.stringify(value)}, has a character that a node id cannot carry`);
  }
  const prefixes = prefixesOf(options, part);
  if (!prefixes) return `${letters[part]}=${value}`;
  const prefix = prefixes.find((one) => value.startsWith(one.prefix) && value.length > one.prefix.length);
  if (prefix) return `${letters[part]}${prefix.shortName}=${value.slice(prefix.prefix.length)}`;
  const known = prefixes.map((one) => one.prefix).join(', ') || 'none';
  throw unusable(
    `the ${part} of this node, ${value}, begins with none of the prefixes in proxy.nodeId.${part}Prefix (${known}); ` +
      'add its beginning there, with a shortName, on all nodes and controllers',
  );
}

function lengthen(options: NodeIdOptions, part: NodeIdentityPart, shortName: string, rest: string): string {
  const prefix = prefixesOf(options, part)?.find((one) => one.shortName === shortName);
  if (prefix) return prefix.prefix + rest;
  throw unusable(
    `the node id shortens its ${part} by "${shortName}", which proxy.nodeId.${part}Prefix of this controller does not have; ` +
      'the prefixes must be the same on all nodes and controllers',
  );
}

function prefixesOf(options: NodeIdOptions, part: NodeIdentityPart) {
  if (part === 'iqn') return options.iqnPrefix;
  return part === 'nqn' ? options.nqnPrefix : undefined;
}

function unusable(message: string): CallError {
  return new CallError('FAILED_PRECONDITION', message);
}
