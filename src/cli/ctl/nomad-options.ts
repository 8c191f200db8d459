/** Options of commands that print Nomad's volume files, and which volumes Nomad can have. */
import type { Command } from 'commander';
import type { AccessMode } from '../../core/volume.ts';
import { UsageError } from '../usage-error.ts';
import { accessModeFrom } from './arguments.ts';

export interface NomadOptions {
  readonly pluginId?: string;
  readonly namespace?: string;
}

export function withNomad(command: Command): Command {
  return command
    .option('--plugin-id <id>', 'for Nomad: the id of `csi_plugin` in the job (default: the plugin’s name)')
    .option('--namespace <name>', 'for Nomad: the namespace of the volume');
}

const accessModes: Readonly<Partial<Record<AccessMode, string>>> = {
  SINGLE_NODE_WRITER: 'single-node-writer',
  SINGLE_NODE_READER_ONLY: 'single-node-reader-only',
  MULTI_NODE_READER_ONLY: 'multi-node-reader-only',
  MULTI_NODE_SINGLE_WRITER: 'multi-node-single-writer',
  MULTI_NODE_MULTI_WRITER: 'multi-node-multi-writer',
};

/** The access mode as Nomad spells it. Throws UsageError for one that it does not have. */
export function requireNomadCan({ access }: { readonly access: string }): string {
  const mode = accessModes[accessModeFrom(access)];
  if (mode !== undefined) return mode;
  throw new UsageError(`Nomad has no access mode like "${access}"`, `It has ${Object.values(accessModes).join(', ')}.`);
}
