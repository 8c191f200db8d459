/** `ctl info` and `ctl capacity`. */
import type { Command } from 'commander';
import { CallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import { services } from '../../generated/services.js';
import { details } from '../output/table.ts';
import { collectPairs, type Pairs } from '../pairs.ts';
import { capabilityFrom } from './arguments.ts';
import {
  controllerCapabilities,
  nodeCapabilities,
  pluginCapabilities,
  type ShownCapabilities,
} from './capabilities.ts';
import type { Run, Session } from './session.ts';
import { topologyShape } from './shapes.ts';
import { topologyText } from './texts.ts';

const { Identity, Controller, Node } = services;

interface ShownInfo {
  readonly endpoint: string;
  readonly name: string;
  readonly version: string;
  readonly manifest: Pairs;
  readonly ready: boolean;
  readonly capabilities: Partial<ShownCapabilities>;
  readonly node?: { readonly id: string; readonly maxVolumes?: number; readonly topology?: Pairs };
}

export function defineInfo(ctl: Command, run: Run): void {
  ctl
    .command('info')
    .description('Who the plugin is, what it can do, and what it says of this node')
    .action((_options: unknown, command: Command) => run(command, info));
  ctl
    .command('capacity')
    .description('Space left for new volumes')
    .option('--connection <name>', 'of one connection; without it, of all together')
    .option('--param <key=value>', 'a parameter (repeatable)', collectPairs)
    .option('--topology <key=value>', 'as seen from there (repeatable)', collectPairs)
    .option(
      '--access <mode>',
      'for volumes of this access mode: rwo, rwop, rox, rwx or a name of the CSI specification',
    )
    .action((options: CapacityOptions, command: Command) => run(command, (session) => capacity(session, options)));
}

interface CapacityOptions {
  readonly connection?: string;
  readonly param?: Pairs;
  readonly topology?: Pairs;
  readonly access?: string;
}

async function info(session: Session): Promise<void> {
  const plugin = await session.call('asking who it is', Identity.GetPluginInfo, {});
  const { ready } = await session.call('asking whether it is ready', Identity.Probe, {});
  const offered = await pluginCapabilities(session);
  const controller = await ifServed(controllerCapabilities(session));
  const node = await ifServed(nodeCapabilities(session));
  const found = node && (await session.call('asking about this node', Node.NodeGetInfo, {}));
  const topology = topologyShape(found?.accessibleTopology);
  const shown: ShownInfo = {
    endpoint: session.target.shown,
    name: plugin.name,
    version: plugin.vendorVersion,
    manifest: { ...plugin.manifest },
    ready: ready?.value ?? true,
    capabilities: { ...offered, ...(controller && { controller }), ...(node && { node }) },
    ...(found && {
      node: {
        id: found.nodeId,
        ...(found.maxVolumesPerNode > 0 && { maxVolumes: found.maxVolumesPerNode }),
        ...(topology && { topology }),
      },
    }),
  };
  session.show(shown, infoText(shown, session));
}

/** A plugin may run as controller or node only: the other service is then not there. */
async function ifServed<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof CallError && error.code === 'UNIMPLEMENTED') return undefined;
    throw error;
  });
}

function infoText({ capabilities, node, ...plugin }: ShownInfo, session: Session): string {
  const list = (names: readonly string[] | undefined) =>
    names === undefined ? 'not served' : names.join('\n') || 'none';
  const manifest = Object.entries(plugin.manifest).map(([key, value]) => `${key} ${value}`);
  return details(
    [
      ['plugin', `${plugin.name} ${plugin.version}`],
      ['manifest', manifest.join(', ')],
      ['endpoint', plugin.endpoint],
      ['ready', plugin.ready ? 'yes' : 'NO'],
      [
        'serves',
        [...(capabilities.plugin ?? []), ...(capabilities.expansion ?? []).map((mode) => `expansion ${mode}`)].join(
          '\n',
        ),
      ],
      ['controller', list(capabilities.controller)],
      ['node', list(capabilities.node)],
      ['node id', node?.id],
      ['node topology', node?.topology && topologyText([node.topology])],
      ['volumes at most', node?.maxVolumes],
    ],
    session.colours,
  );
}

async function capacity(session: Session, options: CapacityOptions): Promise<void> {
  const answer = await session.call('asking for the capacity', Controller.GetCapacity, {
    parameters: { ...options.param, ...(options.connection !== undefined && { connection: options.connection }) },
    volumeCapabilities: options.access === undefined ? [] : [capabilityFrom({ access: options.access })],
    accessibleTopology: options.topology && { segments: options.topology },
  });
  const shown = {
    availableBytes: answer.availableCapacity,
    ...(answer.maximumVolumeSize && { maximumVolumeBytes: answer.maximumVolumeSize.value }),
    ...(answer.minimumVolumeSize && { minimumVolumeBytes: answer.minimumVolumeSize.value }),
  };
  const size = (bytes: number | undefined) => (bytes === undefined ? undefined : formatSize(bytes));
  const text = details(
    [
      ['available', size(shown.availableBytes)],
      ['largest volume', size(shown.maximumVolumeBytes)],
      ['smallest volume', size(shown.minimumVolumeBytes)],
    ],
    session.colours,
  );
  session.show(shown, text);
}
