/** The names by which this machine is known to storage and orchestrators. */
import { maxNodeIdBytes } from '../../proxy/node-identity.ts';
import type { ProcessFacts } from '../environment.ts';
import { openDriver } from '../open-driver.ts';
import { bounded, whyOf } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import { checkHostNqn } from './host-nqn.ts';
import { checkInitiatorName } from './initiator-name.ts';
import type { Inspection } from './inspection.ts';
import { needsOf } from './needs.ts';

const finding = about('identity');

const limitMs = 3000;

/** `nodeInfo`: what NodeGetInfo would answer. */
export async function checkIdentity(
  inspection: Inspection,
  nodeInfo: () => Promise<{ readonly nodeId: string } | undefined>,
): Promise<readonly Finding[]> {
  const { configured, modes, mounts } = inspection;
  const needs = needsOf(configured.connections, modes, mounts);
  const parts = configured.main?.kind === 'proxy' ? configured.main.loaded.value.proxy.nodeId.parts : undefined;
  const found = await Promise.all([
    [nodeName(inspection)],
    configured.main === undefined ? [] : nodeId(nodeInfo),
    checkInitiatorName(inspection, needs.has('iscsi') || (parts?.iqn ?? false)),
    checkHostNqn(inspection, needs.has('nvmeof') || (parts?.nqn ?? false)),
  ]);
  return found.flat();
}

/** As the server asks its driver, which is closed again. */
export function nodeInfoOf({ configured, call }: Pick<Inspection, 'configured' | 'call'>, facts: ProcessFacts) {
  return async () => {
    if (configured.main === undefined) return undefined;
    const driver = await openDriver(configured.main, facts);
    try {
      return await driver.node?.info(call);
    } finally {
      await driver.close();
    }
  };
}

function nodeName({ nodeName: name, env }: Pick<Inspection, 'nodeName' | 'env'>): Finding {
  const from = env.CSI_NODE_ID ? 'CSI_NODE_ID' : 'the host name';
  if (/^(localhost|\(none\)|localhost\.localdomain)?$/.test(name)) {
    const detail = `"${name}", by ${from}: other machines have the same`;
    return finding('warning', 'node name', detail, 'give each node a name of its own, by CSI_NODE_ID or hostnamectl');
  }
  return finding('ok', 'node name', `${name}, by ${from}`);
}

async function nodeId(nodeInfo: () => Promise<{ readonly nodeId: string } | undefined>): Promise<readonly Finding[]> {
  try {
    const info = await bounded(limitMs, 'NodeGetInfo', nodeInfo());
    if (info === undefined) return [];
    const bytes = Buffer.byteLength(info.nodeId);
    const detail = `${info.nodeId} (${bytes} of ${maxNodeIdBytes} bytes)`;
    if (bytes <= maxNodeIdBytes) return [finding('ok', 'node id', detail)];
    return [finding('error', 'node id', detail, 'give the node a shorter name by CSI_NODE_ID')];
  } catch (error) {
    return [finding('error', 'node id', whyOf(error), 'see "switchboard topology"')];
  }
}
