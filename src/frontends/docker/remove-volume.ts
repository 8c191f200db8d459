import { CallError } from '../../core/errors.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { mountWishes } from './options.ts';
import { lockOf, type VolumeDriver, type Workshop } from './workshop.ts';

/** `/VolumeDriver.Remove`: removes the volume from its storage. Volumes that Docker did not make are left alone. */
export function removeVolumeIn(workshop: Workshop): VolumeDriver['remove'] {
  const { driver, index, mounts, leftovers, lookUp, secrets } = workshop;
  return (call, name) =>
    withLock(lockOf(name), call.signal, async () => {
      const volume = await lookUp(call, name);
      if (!volume) return;
      if (!volume.made) {
        throw new CallError(
          'FAILED_PRECONDITION',
          `volume ${JSON.stringify(name)} was not made by Docker and stays; \`switchboard ctl delete ${volume.volumeId}\` removes it`,
        );
      }
      const record = await mounts.read(name);
      if (await mounts.mountpointOf(record)) {
        const count = record?.ids.length ?? 0;
        throw new CallError(
          'FAILED_PRECONDITION',
          `volume ${JSON.stringify(name)} is mounted on this node for ${count} container${count === 1 ? '' : 's'}; stop them first`,
        );
      }
      if (record) await leftovers.takeAway(call, record);
      const { secretFiles } = mountWishes(volume.options);
      await driver.volumes?.delete({ ...call, secrets: await secrets(secretFiles) }, volume.volumeId);
      await index.remove(name);
    });
}
