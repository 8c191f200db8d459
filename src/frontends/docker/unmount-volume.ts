import { withLock } from '../../node/keyed-lock.ts';
import { lockOfName, type VolumeDriver, type Workshop } from './workshop.ts';

/** `/VolumeDriver.Unmount`: forgets the caller, and unmounts the volume when he was the last one. */
export function unmountVolumeIn({ mounts, index, leftovers }: Workshop): VolumeDriver['unmount'] {
  return (call, name, id) =>
    withLock(lockOfName(name), call.signal, async () => {
      const record = await mounts.read(name);
      if (!record) {
        // Its record may have been lost, but its place is known.
        const volumeId = (await index.read(name))?.volumeId ?? name;
        await leftovers.takeAway(call, { name, volumeId, ids: [], secretFiles: {} });
        return;
      }
      const ids = record.ids.filter((one) => one !== id);
      if (ids.length !== record.ids.length) await mounts.write({ ...record, ids });
      if (ids.length > 0) return;
      try {
        await leftovers.takeAway(call, record);
      } catch (error) {
        leftovers.takeUpLater(name);
        throw error;
      }
    });
}
