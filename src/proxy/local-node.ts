/** This node as the proxy presents it: its node id and its topology, made from what the host says of itself. */
import { CallError, errnoOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { NodeInfo, Topology } from '../core/volume.ts';
import { within } from '../core/within.ts';
import type { NodeIdOptions, NodeTopologyOptions } from './config.ts';
import type { NodeIdentity } from './node-identity.ts';
import { encodeNodeId } from './node-identity.ts';
import type { NodeFacts, NodeTopologyExplanation } from './node-topology.ts';
import { explainNodeTopology } from './node-topology.ts';

export interface LocalNodeFacts extends NodeFacts {
  /** Where the host keeps its iSCSI initiator name: `/etc/iscsi/initiatorname.iscsi`. */
  readonly initiatorNameFile: string;
  /** Where the host keeps its NVMe host name: `/etc/nvme/hostnqn`. */
  readonly hostNqnFile: string;
}

/** The node at one moment. Both throw FAILED_PRECONDITION when this node cannot be described. */
export interface NodeView {
  nodeId(): string;
  topology(): Topology;
}

export interface LocalNode {
  /** For NodeGetInfo. Throws FAILED_PRECONDITION saying what is missing. */
  info(): Promise<NodeInfo>;
  /** For drivers: never rejects. */
  view(): Promise<NodeView>;
  explainTopology(): Promise<NodeTopologyExplanation>;
}

export function createLocalNode(
  nodeId: NodeIdOptions,
  nodeTopology: NodeTopologyOptions,
  facts: LocalNodeFacts,
  log: Logger,
): LocalNode {
  const bounded = { ...facts, readFile: (path: string) => readWithin(fileLimitMs, path, facts.readFile) };
  const warned = new Set<string>();

  async function explainTopology(): Promise<NodeTopologyExplanation> {
    const explanation = await explainNodeTopology(nodeTopology, bounded);
    for (const { rule, note, warning } of explanation.outcomes) {
      if (warning) warnOnce(`node topology, ${rule}: ${note}`);
    }
    if (Object.keys(explanation.segments).length === 0) warnOnce('no node topology rule applies to this node');
    return explanation;
  }

  function warnOnce(text: string): void {
    if (warned.has(text)) return;
    warned.add(text);
    log.warn(text);
  }

  const topology = async () => (await explainTopology()).segments;
  const id = async () => encodeNodeId(nodeId, await identityOf(nodeId, bounded));

  return {
    explainTopology,
    info: async () => ({ nodeId: await id(), topology: await topology() }),
    async view() {
      const [idOutcome, topologyOutcome] = await Promise.allSettled([id(), topology()]);
      return { nodeId: () => unwrap(idOutcome), topology: () => unwrap(topologyOutcome) };
    },
  };
}

async function identityOf({ parts }: NodeIdOptions, facts: LocalNodeFacts): Promise<NodeIdentity> {
  return {
    nodeName: facts.nodeName,
    hostname: facts.hostName,
    iqn: parts.iqn ? await iqnFrom(facts) : undefined,
    nqn: parts.nqn ? await nqnFrom(facts) : undefined,
  };
}

/** The file of open-iscsi: `InitiatorName=iqn…` among comments. */
async function iqnFrom({ readFile, initiatorNameFile }: LocalNodeFacts): Promise<string> {
  const text = await read(readFile, initiatorNameFile, 'iqn');
  const iqn = /^[ \t]*InitiatorName[ \t]*=[ \t]*(\S+)/m.exec(text)?.[1];
  if (iqn !== undefined) return iqn;
  throw new CallError(
    'FAILED_PRECONDITION',
    `the node id needs the iqn, but ${initiatorNameFile} has no InitiatorName=`,
  );
}

async function nqnFrom({ readFile, hostNqnFile }: LocalNodeFacts): Promise<string> {
  const nqn = (await read(readFile, hostNqnFile, 'nqn')).trim();
  if (nqn !== '') return nqn;
  throw new CallError('FAILED_PRECONDITION', `the node id needs the nqn, but ${hostNqnFile} is empty`);
}

async function read(readFile: NodeFacts['readFile'], path: string, part: string): Promise<string> {
  try {
    return await readFile(path);
  } catch (error) {
    const why = errnoOf(error) ?? (error instanceof Error ? error.message : String(error));
    throw new CallError('FAILED_PRECONDITION', `the node id needs the ${part}, but ${path} cannot be read (${why})`);
  }
}

const fileLimitMs = 5000;

/** A file on storage that does not answer must not hold up the connections that wait for the node's description. */
async function readWithin(limitMs: number, path: string, readFile: NodeFacts['readFile']): Promise<string> {
  const text = await within(limitMs, readFile(path));
  if (text === undefined) throw new Error(`not read within ${limitMs / 1000} s`);
  return text;
}

function unwrap<T>(outcome: PromiseSettledResult<T>): T {
  if (outcome.status === 'fulfilled') return outcome.value;
  throw outcome.reason;
}
