/**
 * The volume driver that Docker talks to (docker.volumedriver/1.0), in plain functions:
 * https://docs.docker.com/engine/extend/plugins_volume/
 */
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { createVolumeIn } from './create-volume.ts';
import { describeVolume } from './describe-volume.ts';
import { leftoversOf } from './leftovers.ts';
import { listVolumes } from './list-volumes.ts';
import { lookUpIn } from './look-up.ts';
import { mountVolumeIn } from './mount-volume.ts';
import { removeVolumeIn } from './remove-volume.ts';
import { unmountVolumeIn } from './unmount-volume.ts';
import type { VolumeDriver, VolumeDriverParts, Workshop } from './workshop.ts';

export function createVolumeDriver(parts: VolumeDriverParts, log: CallContext['log']): VolumeDriver {
  const lookUp = lookUpIn(parts);
  const leftovers = leftoversOf(parts, log);
  const workshop: Workshop = { ...parts, lookUp, leftovers };
  const { catalog, mounts } = parts;
  return {
    scope: async (call) => parts.scope ?? ((await catalog.isShared(call)) ? 'global' : 'local'),
    create: createVolumeIn(workshop),
    remove: removeVolumeIn(workshop),
    async get(call, name) {
      const known = await lookUp(call, name);
      if (!known) throw new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(name)}`);
      return describeVolume(known, await mounts.mountpointOf(await mounts.read(name)));
    },
    list: (call) => listVolumes(workshop, call),
    // Asks nobody: Docker wants to know this of volumes that are mounted, whatever became of their storage.
    path: async (_call, name) => mounts.mountpointOf(await mounts.read(name)),
    mount: mountVolumeIn(workshop),
    unmount: unmountVolumeIn(workshop),
    leftovers,
  };
}
