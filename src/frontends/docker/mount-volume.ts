import { type CallContext, throwIfOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { attach, nodeIdFor } from './attach.ts';
import type { KnownVolume } from './look-up.ts';
import { mountWishes } from './options.ts';
import { lockOf, type VolumeDriver, type Workshop } from './workshop.ts';

/** `/VolumeDriver.Mount`: mounts it if it is not mounted, which also mends what became of a mount since, and notes the caller. */
export function mountVolumeIn(workshop: Workshop): VolumeDriver['mount'] {
  return (call, name, id) => withLock(lockOf(name), call.signal, () => mountVolume(workshop, call, name, id));
}

async function mountVolume(workshop: Workshop, call: CallContext, name: string, id: string): Promise<string> {
  const { driver, mounts, secrets, leftovers } = workshop;
  const volume = await requireVolume(workshop, call, name);
  const { capability, secretFiles } = mountWishes(volume.options);
  const before = await mounts.read(name);
  const ids = before?.ids ?? [];
  const places = await mounts.placesOf(name);
  const nodeId = await nodeIdFor(call, driver);
  const record = { name, volumeId: volume.volumeId, ids, nodeId, secretFiles };
  // Whatever happens from here on, something is known that can be taken away again.
  await mounts.write(record);
  try {
    const withSecrets = { ...call, secrets: await secrets(secretFiles) };
    const wish = { volumeId: volume.volumeId, context: volume.context, capability };
    const isMounted = (await mounts.mountpointOf(before)) !== undefined;
    await attach(withSecrets, driver, wish, places, nodeId, isMounted);
    await mounts.write({ ...record, ids: [...new Set([...ids, id])] });
    await forgetLeaver(call, () => mounts.write(record));
  } catch (error) {
    if (ids.length === 0) leftovers.takeUpLater(name);
    throw error;
  }
  return places.target;
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
  const volume = await lookUp(call, name);
  if (!volume) throw new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(name)}`);
  if (volume.trouble?.code === 'NOT_FOUND') throw volume.trouble;
  if (Object.keys(volume.context).length > 0) return volume;
  throw new CallError(
    'FAILED_PRECONDITION',
    `its storage cannot tell how ${JSON.stringify(name)} is attached: create it on this node too, with the same options`,
  );
}
