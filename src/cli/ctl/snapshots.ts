/** `ctl snapshot`. */
import type { Command } from 'commander';
import { CallError } from '../../core/errors.ts';
import type { Init, ListSnapshotsRequest } from '../../generated/csi.js';
import { services } from '../../generated/services.js';
import { collectPairs, type Pairs, readSecrets } from '../pairs.ts';
import { parseCount } from './arguments.ts';
import { controllerCapabilities } from './capabilities.ts';
import { entriesWanted, gathered } from './list-volumes.ts';
import type { Run, Session } from './session.ts';
import { type ShownSnapshot, snapshotShape } from './shapes.ts';
import { snapshotsText, snapshotText } from './texts.ts';
import { secretHelp } from './volume-options.ts';

const { Controller } = services;

interface SecretOption {
  readonly secret?: Pairs;
}

export function defineSnapshots(ctl: Command, run: Run): void {
  const snapshot = ctl
    .command('snapshot')
    .description('Make, list, show and delete snapshots')
    .usage('<volume id> <name> | <command> [options]')
    .helpCommand(false);
  snapshot
    .command('create', { isDefault: true })
    .description('Make a snapshot of a volume (the word "create" may be left out)')
    .argument('<volume id>')
    .argument('<name>', 'of the new snapshot')
    .option('--param <key=value>', 'a parameter, as in a snapshot class (repeatable)', collectPairs)
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((volumeId: string, name: string, options: SecretOption & { param?: Pairs }, command: Command) =>
      run(command, (session) => create(session, volumeId, name, options)),
    );
  snapshot
    .command('list')
    .description('List snapshots')
    .option('--volume <id>', 'of this volume')
    .option('--limit <count>', 'this many at most', parseCount)
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((options: ListOptions, command: Command) => run(command, (session) => list(session, options)));
  snapshot
    .command('get')
    .description('Show a snapshot')
    .argument('<id>')
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((id: string, options: SecretOption, command: Command) =>
      run(command, async (session) => {
        const found = await find(session, id, await readSecrets(options.secret));
        session.show(found, snapshotText(found, session));
      }),
    );
  snapshot
    .command('delete')
    .description('Delete a snapshot')
    .argument('<id>')
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((id: string, options: SecretOption, command: Command) =>
      run(command, async (session) => {
        const secrets = await readSecrets(options.secret);
        await session.call(`deleting ${id}`, Controller.DeleteSnapshot, { snapshotId: id, secrets });
        session.show({ id }, `deleted ${id}\n`);
      }),
    );
}

async function create(
  session: Session,
  sourceVolumeId: string,
  name: string,
  options: SecretOption & { param?: Pairs },
): Promise<void> {
  const { snapshot } = await session.call(`taking snapshot ${name}`, Controller.CreateSnapshot, {
    sourceVolumeId,
    name,
    parameters: options.param ?? {},
    secrets: await readSecrets(options.secret),
  });
  if (snapshot === undefined) throw new CallError('INTERNAL', 'the answer holds no snapshot');
  const shown = snapshotShape(snapshot);
  session.show(shown, snapshotText(shown, session));
}

interface ListOptions extends SecretOption {
  readonly volume?: string;
  readonly limit?: number;
}

async function list(session: Session, { volume, limit, secret }: ListOptions): Promise<void> {
  const filter = { sourceVolumeId: volume ?? '', secrets: await readSecrets(secret) };
  const snapshots = await gathered(listSnapshots(session, filter, limit));
  session.show({ snapshots }, snapshotsText(snapshots, session));
}

async function* listSnapshots(
  session: Session,
  filter: Init<ListSnapshotsRequest>,
  limit?: number,
): AsyncGenerator<ShownSnapshot> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let startingToken = '';
  do {
    const page = await session.call('listing snapshots', Controller.ListSnapshots, {
      ...filter,
      startingToken,
      maxEntries: entriesWanted(left),
    });
    for (const { snapshot } of page.entries) if (snapshot && left-- > 0) yield snapshotShape(snapshot);
    startingToken = page.nextToken;
  } while (startingToken !== '' && left > 0);
}

async function find(session: Session, id: string, secrets: Pairs): Promise<ShownSnapshot> {
  if ((await controllerCapabilities(session)).includes('GET_SNAPSHOT')) {
    const { snapshot } = await session.call(`getting ${id}`, Controller.GetSnapshot, { snapshotId: id, secrets });
    if (snapshot) return snapshotShape(snapshot);
  }
  for await (const snapshot of listSnapshots(session, { snapshotId: id, secrets })) return snapshot;
  throw new CallError('NOT_FOUND', `there is no snapshot ${id}`);
}
