import type { CallContext } from '../../core/call.ts';
import type { CatalogEntry } from '../../core/catalog.ts';
import type { ShownVolume } from './describe-volume.ts';
import { nameOfId } from './names.ts';
import { isMarked } from './options.ts';
import type { Workshop } from './workshop.ts';

type Listed = Pick<ShownVolume, 'Name' | 'Mountpoint'>;

/** Docker's volumes on all connections. Of a connection that cannot be asked, those that this node remembers. */
export async function listVolumes(workshop: Workshop, call: CallContext): Promise<readonly Listed[]> {
  const { catalog, index, mounts } = workshop;
  const skip = (error: unknown) => call.log.warn('a file of the Docker state is left out', { error });
  const [findings, remembered, records] = await Promise.all([catalog.all(call), index.all(skip), mounts.all(skip)]);
  for (const { error } of findings.failures) {
    call.log.warn('volumes that cannot be listed are shown as remembered', { error: error.message });
  }
  const there = new Set(findings.entries.map((entry) => entry.status.volume.id));
  const names = new Map<string, string>();
  for (const { name, volumeId } of remembered) {
    const isGone = findings.complete.has(catalog.connectionOf(volumeId)) && !there.has(volumeId);
    if (!isGone) names.set(name, volumeId);
  }
  const known = new Set(names.values());
  const others = findings.entries.filter(({ status }) => isMarked(status.parameters) && !known.has(status.volume.id));
  for (const entry of others) names.set(nameFor(entry, others, names), entry.status.volume.id);
  const recordOf = new Map(records.map((record) => [record.name, record]));
  return Promise.all(
    [...names.keys()].map(async (name) => ({
      Name: name,
      Mountpoint: (await mounts.mountOf(recordOf.get(name)))?.mountPoint ?? '',
    })),
  );
}

/** Qualified by its connection where the bare name would mean another volume, or nothing certain. */
function nameFor(entry: CatalogEntry, others: readonly CatalogEntry[], names: ReadonlyMap<string, string>): string {
  const name = nameOfId(entry.innerId);
  const isTaken = names.has(name) || others.some((other) => other !== entry && nameOfId(other.innerId) === name);
  return isTaken && entry.connection !== undefined ? `${entry.connection}/${name}` : name;
}
