/** `ctl create`, `clone`, `list`, `get`, `expand`, `validate`, `delete`. */
import { type Command, Option } from 'commander';
import { services } from '../../generated/services.js';
import { exitCodes } from '../exit-codes.ts';
import { collectPairs, type Pairs, readSecrets } from '../pairs.ts';
import { type CapabilityOptions, capabilityFrom, capacityFrom, parseCount } from './arguments.ts';
import { createVolume } from './create-volume.ts';
import { findVolume } from './find-volume.ts';
import { gathered, listVolumes } from './list-volumes.ts';
import { type NomadOptions, requireNomadCan, withNomad } from './nomad-options.ts';
import { showNomadVolumes } from './nomad-show.ts';
import type { Run, Session } from './session.ts';
import type { ShownVolume } from './shapes.ts';
import { sizeText, volumesText, volumeText } from './texts.ts';
import { type CreateOptions, secretHelp, withCapability, withCreateOptions } from './volume-options.ts';

const { Controller } = services;

interface FormatOptions extends CreateOptions, NomadOptions {
  readonly format?: 'nomad';
}

function withFormat(command: Command): Command {
  return withNomad(
    command.addOption(
      new Option(
        '--format <format>',
        'nomad: print the file for `nomad volume register`, or with --json for its API',
      ).choices(['nomad']),
    ),
  );
}

export function defineVolumes(ctl: Command, run: Run): void {
  withFormat(withCreateOptions(ctl.command('create').argument('<name>')))
    .description('Make a volume')
    .option('--from-snapshot <id>', 'filled with a snapshot')
    .option('--from-volume <id>', 'filled with a copy of a volume')
    .action((name: string, options: FormatOptions, command: Command) =>
      run(command, (session) => create(session, name, options)),
    );
  withFormat(
    withCreateOptions(
      ctl.command('clone').argument('<id>', 'the volume to copy').argument('<name>', 'of the new volume'),
    ),
  )
    .description('Make a volume that is a copy of another')
    .action((id: string, name: string, options: FormatOptions, command: Command) =>
      run(command, (session) => create(session, name, { ...sameConnection(id), ...options, fromVolume: id })),
    );
  ctl
    .command('list')
    .description('List volumes')
    .option('--limit <count>', 'this many at most', parseCount)
    .action((options: { limit?: number }, command: Command) => run(command, (session) => list(session, options.limit)));
  ctl
    .command('get')
    .description('Show a volume')
    .argument('<id>')
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async (session) => {
        const volume = await findVolume(session, id);
        session.show(volume, volumeText(volume, session));
      }),
    );
  ctl
    .command('expand')
    .description('Make a volume larger')
    .argument('<id>')
    .argument('<size>', 'such as 20Gi')
    .option('--limit <size>', 'no larger than this')
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((id: string, size: string, options: { limit?: string; secret?: Pairs }, command: Command) =>
      run(command, (session) => expand(session, id, size, options)),
    );
  withCapability(ctl.command('validate').argument('<id>'))
    .description('Ask whether a volume can be used in a certain way')
    .option('--param <key=value>', 'a parameter it should have (repeatable)', collectPairs)
    .option('--context <key=value>', 'the context it was made with (repeatable)', collectPairs)
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((id: string, options: ValidateOptions, command: Command) =>
      run(command, (session) => validate(session, id, options)),
    );
  ctl
    .command('delete')
    .description('Delete a volume and what is in it')
    .argument('<id>')
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((id: string, options: { secret?: Pairs }, command: Command) =>
      run(command, async (session) => {
        const secrets = await readSecrets(options.secret);
        await session.call(`deleting ${id}`, Controller.DeleteVolume, { volumeId: id, secrets });
        session.show({ id }, `deleted ${id}\n`);
      }),
    );
}

async function create(session: Session, name: string, options: FormatOptions): Promise<void> {
  if (options.format === 'nomad') {
    requireNomadCan(options);
    const volume = await createVolume(session, name, options);
    return await showNomadVolumes(session, [{ name, made: volume }], options);
  }
  const shown = await createVolume(session, name, options);
  session.show(shown, volumeText(shown, session));
}

/** A copy is made where the volume is, unless another connection is named. */
function sameConnection(id: string): { connection?: string } {
  const connection = /^v:([^/]+)\//.exec(id)?.[1];
  return connection === undefined ? {} : { connection };
}

async function list(session: Session, limit: number | undefined): Promise<void> {
  const volumes: ShownVolume[] = await gathered(listVolumes(session, limit));
  session.show({ volumes }, volumesText(volumes, session));
}

async function expand(
  session: Session,
  id: string,
  size: string,
  options: { limit?: string; secret?: Pairs },
): Promise<void> {
  const answer = await session.call(`expanding ${id}`, Controller.ControllerExpandVolume, {
    volumeId: id,
    capacityRange: capacityFrom(size, options.limit),
    secrets: await readSecrets(options.secret),
  });
  const shown = { id, capacityBytes: answer.capacityBytes, nodeExpansionRequired: answer.nodeExpansionRequired };
  const next = answer.nodeExpansionRequired ? `\nnext, where it is in use: switchboard ctl node-expand ${id} PATH` : '';
  session.show(shown, `expanded ${id} to ${sizeText(answer.capacityBytes)}${next}\n`);
}

interface ValidateOptions extends CapabilityOptions {
  readonly param?: Pairs;
  readonly context?: Pairs;
  readonly secret?: Pairs;
}

async function validate(session: Session, id: string, options: ValidateOptions): Promise<void> {
  const { confirmed, message } = await session.call(`validating ${id}`, Controller.ValidateVolumeCapabilities, {
    volumeId: id,
    volumeCapabilities: [capabilityFrom(options)],
    volumeContext: options.context ?? {},
    parameters: options.param ?? {},
    secrets: await readSecrets(options.secret),
  });
  if (!confirmed) session.outcome.code = exitCodes.failed;
  const text = confirmed ? `${id} can be used so` : `${id} can not be used so: ${message || 'no reason given'}`;
  session.show({ id, confirmed: confirmed !== undefined, ...(message !== '' && { message }) }, `${text}\n`);
}
