import { type CallContext, throwIfOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { attach, nodeIdFor } from './attach.ts';
import type { KnownVolume } from './look-up.ts';
import type { MountRecords } from './mount-records.ts';
import { mountWishes } from './options.ts';
import type { IndexedVolume } from './volume-index.ts';
import { lockOfName, lockOfVolume, type VolumeDriver, type Workshop } from './workshop.ts';

/** `/VolumeDriver.Mount`: mounts it if it is not mounted, which also mends what became of a mount since, and notes the caller. */
export function mountVolumeIn(workshop: Workshop): VolumeDriver['mount'] {
  return (call, name, id) =>
    withLock(lockOfName(name), call.signal, async () => {
      const { facts } = await requireVolume(workshop, call, name);
      // Two names of one volume must not be mounted at the same time: each would let go of storage that the other needs.
      return await withLock(lockOfVolume(facts.volumeId), call.signal, () => mountVolume(workshop, call, facts, id));
    });
}

async function mountVolume(workshop: Workshop, call: CallContext, facts: IndexedVolume, id: string): Promise<string> {
  const { driver, index, mounts, secrets, leftovers } = workshop;
  const { name, volumeId, context } = facts;
  await refuseOtherName(mounts, name, volumeId);
  const { capability, secretFiles } = mountWishes(facts.options);
  const before = await mounts.read(name);
  const ids = before?.ids ?? [];
  const places = await mounts.placesOf(name);
  const nodeId = await nodeIdFor(call, driver);
  const record = { name, volumeId, ids, nodeId, secretFiles };
  // Whatever happens from here on, something is known that can be taken away again.
  await index.write(name, facts);
  await mounts.write(record);
  try {
    const isMounted = (await mounts.mountOf(before)) !== undefined;
    const withSecrets = { ...call, secrets: await secrets(secretFiles) };
    await attach(withSecrets, driver, { volumeId, context, capability }, places, nodeId, isMounted);
    await workshop.requireSeen(places.target);
    await mounts.write({ ...record, ids: [...new Set([...ids, id])] });
    await forgetLeaver(call, () => mounts.write(record));
  } catch (error) {
    if (ids.length === 0) leftovers.takeUpLater(name);
    throw error;
  }
  return places.target;
}

async function refuseOtherName(mounts: MountRecords, name: string, volumeId: string): Promise<void> {
  const others = (await mounts.ofVolume(volumeId)).filter((record) => record.name !== name);
  const [other] = others.filter((record) => record.ids.length > 0);
  if (!other) return;
  throw new CallError(
    'FAILED_PRECONDITION',
    `volume ${JSON.stringify(name)} is mounted under its other name ${JSON.stringify(other.name)}: use that`,
  );
}

/**
 * Who left before the answer will never unmount: he is not counted. Done before anybody else can mount, since he may ask again under the same
 * id, and that mount must stay.
 */
async function forgetLeaver(call: CallContext, forget: () => Promise<void>): Promise<void> {
  if (!call.signal.aborted) return;
  await forget();
  throwIfOver(call.signal);
}

async function requireVolume({ lookUp }: Workshop, call: CallContext, name: string): Promise<KnownVolume> {
  const known = await lookUp(call, name);
  if (!known) throw new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(name)}`);
  if (known.trouble?.code === 'NOT_FOUND') throw known.trouble;
  if (Object.keys(known.facts.context).length > 0) return known;
  throw new CallError(
    'FAILED_PRECONDITION',
    `its storage cannot tell how ${JSON.stringify(name)} is attached: create it on this node too, with the same options`,
  );
}
