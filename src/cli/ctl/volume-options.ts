/** The options that decide what a new volume is like. */
import type { Command } from 'commander';
import { collect, collectPairSets, collectPairs, type Pairs } from '../pairs.ts';
import type { CapabilityOptions } from './arguments.ts';

export const secretHelp = 'a secret; key=@file keeps it out of the process list (repeatable)';

export interface CreateOptions extends CapabilityOptions {
  readonly size?: string;
  readonly limit?: string;
  readonly connection?: string;
  readonly param?: Pairs;
  readonly fromSnapshot?: string;
  readonly fromVolume?: string;
  readonly topology?: readonly Pairs[];
  readonly secret?: Pairs;
}

export function withCapability(command: Command): Command {
  return command
    .option('--access <mode>', 'rwo, rwop, rox, rwx or a name of the CSI specification', 'rwo')
    .option('--block', 'as a block device, without a file system')
    .option('--fs-type <type>', 'the file system, such as ext4')
    .option('--mount-flag <flag>', 'a mount option (repeatable)', collect);
}

/** Everything that decides what a new volume is like, but what it is filled with. */
export function withCreateOptions(command: Command): Command {
  return withCapability(command)
    .option('--size <size>', 'such as 10Gi, 500M; without it the plugin chooses')
    .option('--limit <size>', 'no larger than this')
    .option('--connection <name>', 'the connection to make it on; short for --param connection=<name>')
    .option('--param <key=value>', 'a parameter, as in a storage class (repeatable)', collectPairs)
    .option('--topology <key=value,…>', 'where it must be reachable from; repeated: any one of them', collectPairSets)
    .option('--secret <key=value>', secretHelp, collectPairs);
}

/** The parameters of CreateVolume, the connection among them. */
export function parametersOf({ param, connection }: Pick<CreateOptions, 'param' | 'connection'>): Pairs {
  return { ...param, ...(connection !== undefined && { connection }) };
}
