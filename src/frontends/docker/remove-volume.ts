import { CallError } from '../../core/errors.ts';
import { withLock } from '../../node/keyed-lock.ts';
import type { MountRecord, MountRecords } from './mount-records.ts';
import { mountedElsewhere } from './mounted-elsewhere.ts';
import { mountWishes } from './options.ts';
import { lockOfName, type VolumeDriver, type Workshop } from './workshop.ts';

/** `/VolumeDriver.Remove`: removes the volume from its storage. Volumes that Docker did not make are left alone. */
export function removeVolumeIn(workshop: Workshop): VolumeDriver['remove'] {
  const { driver, index, mounts, leftovers, lookUp, secrets } = workshop;
  return (call, name) =>
    withLock(lockOfName(name), call.signal, async () => {
      const known = await lookUp(call, name);
      if (!known) return;
      const { volumeId, options, made } = known.facts;
      if (!made) {
        throw new CallError(
          'FAILED_PRECONDITION',
          `volume ${JSON.stringify(name)} was not made by Docker and stays; \`switchboard ctl delete ${volumeId}\` removes it`,
        );
      }
      for (const record of await mounts.ofVolume(volumeId)) {
        await refuseUsed(mounts, name, record);
        await leftovers.takeAway(call, record);
      }
      const { secretFiles } = mountWishes(options);
      await driver.volumes?.delete({ ...call, secrets: await secrets(secretFiles) }, volumeId);
      await index.remove(name);
    });
}

/**
 * Docker does not ask for the removal of a volume that one of its containers has. So callers that are still noted then are those that a killed
 * dockerd never unmounted for; unless a container can be seen that has it after all.
 */
async function refuseUsed(mounts: MountRecords, name: string, record: MountRecord): Promise<void> {
  const mount = await mounts.mountOf(record);
  if (!mount) return;
  const users = await mountedElsewhere(mount, await mounts.placesOf(record.name));
  if (users.length === 0) return;
  const under = record.name === name ? '' : ` as ${JSON.stringify(record.name)}`;
  throw new CallError(
    'FAILED_PRECONDITION',
    `volume ${JSON.stringify(name)} is in use on this node${under} by ${users.join(', ')}; it stays until that ends`,
  );
}
