/** Looking for volumes by name, as a {@link Catalog} does, with nothing but the operations of a driver. */
import type { CallContext } from './call.ts';
import type { Catalog, Findings } from './catalog.ts';
import type { Driver, VolumeOperations } from './driver.ts';
import { asCallError, CallError } from './errors.ts';
import type { MountCapability, VolumeStatus } from './volume.ts';

/** The catalog of one driver that serves directly. */
export function singleCatalog(driver: Driver): Catalog {
  const { volumes } = driver;
  const ask = (work: (volumes: VolumeOperations) => Promise<readonly VolumeStatus[] | undefined>) =>
    findingsOf(undefined, async () => (volumes ? await work(volumes) : undefined));
  return {
    parse: (name) => ({ name }),
    connectionOf: () => undefined,
    find: (call, { name }) => ask((operations) => volumesNamed(call, operations, name)),
    all: (call) => ask((operations) => everyVolume(call, operations)),
    isShared: async () => !driver.constrained,
  };
}

/** What one connection says, failures included. `work` resolves with undefined when it cannot tell at all. */
export async function findingsOf(
  connection: string | undefined,
  work: () => Promise<readonly VolumeStatus[] | undefined>,
  outward: (status: VolumeStatus) => VolumeStatus = (status) => status,
): Promise<Findings> {
  try {
    const found = await work();
    const entries = (found ?? []).map((status) => ({
      connection,
      innerId: status.volume.id,
      status: outward(status),
    }));
    return { entries, failures: [], complete: new Set(found ? [connection] : []) };
  } catch (error) {
    return { entries: [], failures: [{ connection, error: asCallError(error) }], complete: new Set() };
  }
}

export function joinFindings(parts: readonly Findings[]): Findings {
  return {
    entries: parts.flatMap((part) => part.entries),
    failures: parts.flatMap((part) => part.failures),
    complete: new Set(parts.flatMap((part) => [...part.complete])),
  };
}

const anyMount: MountCapability = {
  type: 'mount',
  mode: 'SINGLE_NODE_WRITER',
  fsType: '',
  mountFlags: [],
  mountGroup: '',
};

/** The volume that a driver made under this name, or else the one with this id: a list of none or one. */
export async function volumesNamed(
  call: CallContext,
  volumes: VolumeOperations,
  name: string,
): Promise<readonly VolumeStatus[]> {
  for (const id of new Set([...idsFor(volumes, name), name])) {
    const status = await unlessMissing(() => statusOf(call, volumes, id));
    if (status) return [status];
  }
  return [];
}

function idsFor(volumes: VolumeOperations, name: string): readonly string[] {
  try {
    const topology = { requisite: [], preferred: [] };
    const spec = { name, capacity: {}, capabilities: [anyMount], parameters: {}, mutableParameters: {}, topology };
    return [volumes.idFor(spec)];
  } catch {
    // A name that it cannot take has no volume there.
    return [];
  }
}

/** A driver without `get` tells that there is a volume, but not how it is attached: the context is empty then. */
async function statusOf(call: CallContext, volumes: VolumeOperations, volumeId: string): Promise<VolumeStatus> {
  if (volumes.get) return await volumes.get(call, volumeId);
  await volumes.validate(call, { volumeId, context: {}, capabilities: [anyMount], parameters: {} });
  return { volume: { id: volumeId, capacityBytes: 0, context: {} } };
}

async function unlessMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CallError && (error.code === 'NOT_FOUND' || error.code === 'INVALID_ARGUMENT')) return;
    throw error;
  }
}

/** Pages of a list that is without end. */
const mostPages = 1000;

/** All volumes of a driver, page by page; undefined when it has no list. */
export async function everyVolume(
  call: CallContext,
  volumes: VolumeOperations,
): Promise<readonly VolumeStatus[] | undefined> {
  if (!volumes.list) return undefined;
  const found: VolumeStatus[] = [];
  let token: string | undefined;
  for (let pages = 0; pages < mostPages; pages++) {
    const page = await volumes.list(call, { token });
    found.push(...page.entries);
    if (!page.nextToken) return found;
    token = page.nextToken;
  }
  throw new CallError('INTERNAL', 'the list of volumes does not end');
}
