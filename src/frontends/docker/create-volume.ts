import type { CallContext } from '../../core/call.ts';
import type { CatalogName, Findings } from '../../core/catalog.ts';
import { CallError } from '../../core/errors.ts';
import type { ContentSource, VolumeSpec } from '../../core/volume.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { createWishes, mountWishes, normalised, type Options, type Source } from './options.ts';
import { lockOfName, type VolumeDriver, type Workshop } from './workshop.ts';

/**
 * `/VolumeDriver.Create`. Docker sends it for every volume that `Get` does not know, also for `docker run -v name:/data` without any options, so
 * it must never make an empty volume beside one of the same name that merely could not be found: throws ALREADY_EXISTS for a name that is taken
 * on another connection, and UNAVAILABLE when that cannot be told and no connection was asked for.
 */
export function createVolumeIn(workshop: Workshop): VolumeDriver['create'] {
  const { driver, catalog, index, defaults, secrets } = workshop;

  return async (call, name, given) => {
    const { volumes } = driver;
    if (!volumes) throw new CallError('UNIMPLEMENTED', `driver ${driver.name} cannot make volumes`);
    const wanted = catalog.parse(name);
    const asked = normalised(given);
    const options = withConnection(wanted, asked, normalised(defaults));
    const wishes = createWishes(options);
    const { capability, secretFiles } = mountWishes(wishes.parameters);
    await withLock(lockOfName(name), call.signal, async () => {
      const connection = options.connection ?? catalog.defaultConnection;
      const isExplicit = wanted.connection !== undefined || asked.connection !== undefined;
      await refuseSecond(call, name, wanted, connection, isExplicit);
      const spec: VolumeSpec = {
        name: wanted.name,
        capacity: { requiredBytes: wishes.sizeBytes },
        capabilities: [capability],
        parameters: wishes.parameters,
        mutableParameters: {},
        source: wishes.source && (await idOfSource(call, wishes.source)),
        topology: { requisite: [], preferred: [] },
      };
      const volume = await volumes.create({ ...call, secrets: await secrets(secretFiles) }, spec);
      await index.write(name, {
        format: 1,
        name,
        volumeId: volume.id,
        context: { ...volume.context },
        options: { ...wishes.parameters },
        capacityBytes: volume.capacityBytes,
        made: true,
        createdAt: (await index.read(name))?.createdAt ?? new Date().toISOString(),
      });
    });
  };

  async function refuseSecond(
    call: CallContext,
    name: string,
    wanted: CatalogName,
    connection: string | undefined,
    isExplicit: boolean,
  ): Promise<void> {
    const before = await index.read(name);
    const home = before && catalog.connectionOf(before.volumeId);
    if (before && home !== connection && (await workshop.lookUp(call, name))) throw taken(name, wanted, [home]);
    if (wanted.connection !== undefined) return;
    const findings = await catalog.find(call, { name: wanted.name });
    const elsewhere = findings.entries.filter((entry) => entry.connection !== connection);
    if (elsewhere.length > 0)
      throw taken(
        name,
        wanted,
        elsewhere.map((entry) => entry.connection),
      );
    if (!isExplicit) refuseToGuess(name, connection, findings);
  }

  async function idOfSource(call: CallContext, { type, name }: Source): Promise<ContentSource> {
    if (type === 'snapshot') return { type, id: name };
    return { type, id: (await workshop.lookUp(call, name))?.facts.volumeId ?? name };
  }
}

/** The connection of a qualified name goes before the default one. Throws INVALID_ARGUMENT when the name and an option contradict each other. */
function withConnection({ connection }: CatalogName, asked: Options, defaults: Options): Options {
  if (connection === undefined) return { ...defaults, ...asked };
  if (asked.connection !== undefined && asked.connection !== connection) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `the name says connection ${JSON.stringify(connection)}, the option connection ${JSON.stringify(asked.connection)}`,
    );
  }
  return { ...defaults, ...asked, connection };
}

function refuseToGuess(name: string, connection: string | undefined, { failures }: Findings): void {
  const others = failures.filter((failure) => failure.connection !== connection);
  if (others.length === 0) return;
  throw new CallError(
    'UNAVAILABLE',
    `volume ${JSON.stringify(name)} is not made, for it may be where nobody answers: ` +
      `${others.map(({ error }) => error.message).join('; ')}; try again then, or say where: -o connection=NAME`,
  );
}

function taken(name: string, { name: inner }: CatalogName, where: readonly (string | undefined)[]): CallError {
  const choices = where.map((connection) => (connection === undefined ? inner : `${connection}/${inner}`)).join(' or ');
  return new CallError(
    'ALREADY_EXISTS',
    `there is a volume ${JSON.stringify(name)} already: use it by the name ${choices}, or choose another name`,
  );
}
