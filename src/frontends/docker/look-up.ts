/** From a name to a volume: by what the back ends say, and by what this node remembers when they say nothing. */
import type { CallContext } from '../../core/call.ts';
import type { Catalog, CatalogEntry, Findings } from '../../core/catalog.ts';
import type { Driver } from '../../core/driver.ts';
import { asCallError, CallError } from '../../core/errors.ts';
import type { VolumeStatus } from '../../core/volume.ts';
import { limited } from '../../proxy/limited.ts';
import type { MountRecords } from './mount-records.ts';
import { isMarked } from './options.ts';
import type { IndexedVolume, VolumeIndex } from './volume-index.ts';

export interface KnownVolume {
  readonly facts: IndexedVolume;
  readonly connection: string | undefined;
  readonly condition?: VolumeStatus['condition'];
  /** Why the back end did not say so itself; what is told is then what this node remembers. */
  readonly trouble?: CallError | undefined;
}

export interface LookUpParts {
  readonly driver: Driver;
  readonly catalog: Catalog;
  readonly index: VolumeIndex;
  readonly mounts: MountRecords;
}

/** Milliseconds for a back end to say whether a volume is there. */
const limitMs = 5000;

export type LookUp = (call: CallContext, name: string) => Promise<KnownVolume | undefined>;

/**
 * The volume of this name, or undefined when there certainly is none. Throws FAILED_PRECONDITION when several have it, and UNAVAILABLE when a
 * back end that may have it cannot be asked.
 *
 * A name without a connection means volumes that Docker made. Any other is there for Docker under `connection/name` only: Swarm's volumes have
 * names too, and `docker volume rm` tries a plugin's volumes before Swarm's.
 */
export function lookUpIn(parts: LookUpParts): LookUp {
  const { catalog, index } = parts;

  async function remembered(call: CallContext, indexed: IndexedVolume): Promise<KnownVolume | undefined> {
    const connection = catalog.connectionOf(indexed.volumeId);
    const answer = await ask(call, parts.driver, indexed.volumeId);
    if (answer === 'unable') return { facts: indexed, connection };
    if (!(answer instanceof CallError)) {
      const known = toKnown(indexed, connection, answer);
      if (JSON.stringify(known.facts) !== JSON.stringify(indexed)) await index.write(indexed.name, known.facts);
      return known;
    }
    if (answer.code !== 'NOT_FOUND' || (await isInUse(parts, indexed.name))) {
      return { facts: indexed, connection, trouble: answer };
    }
    await index.remove(indexed.name);
    return undefined;
  }

  return async (call, name) => {
    const indexed = await index.read(name);
    const known = indexed && (await remembered(call, indexed));
    if (known) return known;
    const wanted = catalog.parse(name);
    const findings = await catalog.find(call, wanted);
    const entries =
      wanted.connection === undefined
        ? findings.entries.filter((entry) => isMarked(entry.status.parameters))
        : findings.entries;
    const [entry] = entries;
    if (!entry) {
      refuseToGuess(name, findings);
      return undefined;
    }
    if (entries.length > 1) throw ambiguous(name, wanted.name, entries);
    const unknown = { format: 1, name, volumeId: '', context: {}, options: {}, capacityBytes: 0, made: false } as const;
    return toKnown(unknown, entry.connection, entry.status);
  };
}

function toKnown(before: IndexedVolume, connection: string | undefined, status: VolumeStatus): KnownVolume {
  const { volume, parameters, condition } = status;
  const facts = {
    ...before,
    volumeId: volume.id,
    context: { ...volume.context },
    capacityBytes: volume.capacityBytes,
    made: before.made || isMarked(parameters),
    options: { ...(parameters ?? before.options) },
  };
  return { facts, connection, condition };
}

/** `unable`: it has no such question. */
async function ask(call: CallContext, driver: Driver, volumeId: string): Promise<VolumeStatus | CallError | 'unable'> {
  const get = driver.volumes?.get;
  if (!get) return 'unable';
  try {
    return await limited(call, limitMs, (bounded) => get(bounded, volumeId));
  } catch (error) {
    if (call.signal.aborted) throw error;
    const known = asCallError(error);
    return known.code === 'UNIMPLEMENTED' ? 'unable' : known;
  }
}

async function isInUse({ mounts }: LookUpParts, name: string): Promise<boolean> {
  const record = await mounts.read(name);
  return record !== undefined && record.ids.length > 0;
}

function refuseToGuess(name: string, { failures }: Findings): void {
  if (failures.length === 0) return;
  throw new CallError(
    'UNAVAILABLE',
    `volume ${JSON.stringify(name)} was not found, but not everybody could be asked: ${failures.map(({ error }) => error.message).join('; ')}`,
  );
}

function ambiguous(name: string, inner: string, entries: readonly CatalogEntry[]): CallError {
  const choices = entries.map(({ connection }) => `${connection}/${inner}`).join(' or ');
  return new CallError(
    'FAILED_PRECONDITION',
    `there are several volumes ${JSON.stringify(name)}: use the name ${choices}`,
  );
}
