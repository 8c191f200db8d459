import { CallError } from '../../core/errors.ts';
import { withLock } from '../../node/keyed-lock.ts';
import type { MountRecords } from './mount-records.ts';
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
      await refuseMounted(mounts, name, volumeId);
      const record = await mounts.read(name);
      if (record) await leftovers.takeAway(call, record);
      const { secretFiles } = mountWishes(options);
      await driver.volumes?.delete({ ...call, secrets: await secrets(secretFiles) }, volumeId);
      await index.remove(name);
    });
}

/** It may be mounted under another of its names. */
async function refuseMounted(mounts: MountRecords, name: string, volumeId: string): Promise<void> {
  for (const record of await mounts.ofVolume(volumeId)) {
    if (!(await mounts.mountpointOf(record))) continue;
    const { length } = record.ids;
    const under = record.name === name ? '' : ` as ${JSON.stringify(record.name)}`;
    throw new CallError(
      'FAILED_PRECONDITION',
      `volume ${JSON.stringify(name)} is mounted on this node${under} for ${length} container${length === 1 ? '' : 's'}; stop them first`,
    );
  }
}
