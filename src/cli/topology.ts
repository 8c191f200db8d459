/** `switchboard topology`: what this node would tell an orchestrator of itself, and why. */
import type { Command } from 'commander';
import { formatProblem } from '../config/problem.ts';
import { detachedContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { silentLogger } from '../core/logger.ts';
import type { Topology } from '../core/volume.ts';
import { createProxy } from '../proxy/index.ts';
import { decodeNodeId, maxNodeIdBytes, type NodeIdentity } from '../proxy/node-identity.ts';
import type { RuleOutcome } from '../proxy/node-topology.ts';
import { idleEnvironment } from './driver-from-example.ts';
import { directEnvironment, type ProcessFacts, proxyEnvironment } from './environment.ts';
import { exitCodes } from './exit-codes.ts';
import { hostName } from './host-name.ts';
import { loadMainConfig } from './main-config.ts';
import type { Outcome } from './outcome.ts';
import { details, table } from './output/table.ts';
import { settingReader } from './setting-reader.ts';
import type { Shell } from './shell.ts';
import { systemConfigPath } from './state-directory.ts';

const help = `
CSI_NODE_ID is the node's name; without it the host name is, which within a container SWITCHBOARD_HOST_NAME_FILE tells. Nothing is started and no storage is asked.

Examples:
  switchboard topology --config /etc/switchboard/switchboard.yaml
  CSI_NODE_ID=worker-3.rack-b switchboard topology --config switchboard.yaml --json`;

interface ShownNode {
  readonly nodeId?: string;
  readonly nodeIdBytes?: number;
  /** What the controller reads from the node id; direct drivers have no parts. */
  readonly parts?: NodeIdentity;
  readonly topology?: Topology;
  readonly rules: readonly RuleOutcome[];
  /** Why this node cannot be told. */
  readonly errors: readonly string[];
}

export function define(topology: Command, shell: Shell, outcome: Outcome): void {
  topology
    .option('--config <file>', `the main configuration file (default: ${systemConfigPath})`)
    .option('--driver-config-file <file>', 'the same')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(async (options: { json?: boolean }, command: Command) => {
      const read = settingReader(command.opts(), shell.env);
      const path = read.text('driver-config-file') ?? read.text('config') ?? systemConfigPath;
      const node = await describeNode(path, shell);
      if (node.errors.length > 0) outcome.code = exitCodes.failed;
      if (options.json) shell.out(`${JSON.stringify(node, null, 2)}\n`);
      else shell.out(nodeText(node, shell.outIsTerminal && !shell.env.NO_COLOR));
      for (const error of options.json ? [] : node.errors) shell.err(`error: ${error}\n`);
    });
}

async function describeNode(path: string, shell: Shell): Promise<ShownNode> {
  const main = await loadMainConfig(path, shell.env);
  for (const warning of main.loaded.warnings) shell.err(`${formatProblem(warning)}\n`);
  const nameOfHost = await hostName(shell.env);
  const facts: ProcessFacts = {
    csiName: idleEnvironment.csiName,
    nodeName: shell.env.CSI_NODE_ID || nameOfHost,
    hostName: nameOfHost,
    env: shell.env,
    run: idleEnvironment.run,
    log: silentLogger,
  };
  const call = detachedContext(silentLogger);
  if (main.kind === 'direct') {
    await main.type.prepare?.(main.loaded.value as never);
    const driver = main.type.create(main.loaded.value as never, directEnvironment(facts));
    const info = await driver.node?.info(call);
    await driver.close();
    return {
      ...(info && shownInfo(info.nodeId)),
      ...(info?.topology && { topology: info.topology }),
      rules: [],
      errors: [],
    };
  }
  const config = main.loaded.value;
  const proxy = createProxy(config, proxyEnvironment(facts));
  const errors: string[] = [];
  const orError = async <T>(work: Promise<T> | undefined) =>
    work?.catch((error: unknown) => {
      if (!(error instanceof CallError)) throw error;
      errors.push(error.message);
      return undefined;
    });
  const explained = await orError(proxy.explainNodeTopology());
  const info = explained && (await orError(proxy.node?.info(call)));
  await proxy.close();
  const parts = info && decodeNodeId(config.proxy.nodeId, info.nodeId);
  return {
    ...(info && shownInfo(info.nodeId)),
    ...(parts && { parts }),
    ...(explained && { topology: explained.segments }),
    rules: explained?.outcomes ?? [],
    errors,
  };
}

function shownInfo(nodeId: string) {
  return { nodeId, nodeIdBytes: Buffer.byteLength(nodeId) };
}

function nodeText(node: ShownNode, colours: boolean): string {
  const parts = Object.entries(node.parts ?? {}).map(([name, value]) => `${name} ${value}`);
  const segments = Object.entries(node.topology ?? {}).map(([key, value]) => `${key}=${value}`);
  const text = details(
    [
      ['node id', node.nodeId && `${node.nodeId}  (${node.nodeIdBytes} of ${maxNodeIdBytes} bytes)`],
      ['made of', parts.join('\n')],
      ['topology', node.topology && (segments.join('\n') || 'none')],
    ],
    colours,
  );
  if (node.rules.length === 0) return text;
  const rows = node.rules.map(({ rule, segment, note, warning }) => [
    rule,
    segment ? `${segment.key}=${segment.value}` : '',
    `${warning ? 'warning: ' : ''}${note ?? ''}`,
  ]);
  return `${text}\n${table(['RULE', 'GIVES', ''], rows, colours)}`;
}
