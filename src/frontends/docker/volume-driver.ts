/**
 * The volume driver that Docker talks to (docker.volumedriver/1.0), in plain functions:
 * https://docs.docker.com/engine/extend/plugins_volume/
 */
import type { CallContext } from '../../core/call.ts';
import { createVolumeIn } from './create-volume.ts';
import { describeVolume } from './describe-volume.ts';
import { leftoversOf } from './leftovers.ts';
import { listVolumes } from './list-volumes.ts';
import { lookUpIn } from './look-up.ts';
import type { MountRecords } from './mount-records.ts';
import { mountVolumeIn } from './mount-volume.ts';
import { removeVolumeIn } from './remove-volume.ts';
import { unmountVolumeIn } from './unmount-volume.ts';
import type { Scope, VolumeDriver, VolumeDriverParts, Workshop } from './workshop.ts';

export function createVolumeDriver(parts: VolumeDriverParts, log: CallContext['log']): VolumeDriver {
  const lookUp = lookUpIn(parts);
  const leftovers = leftoversOf(parts, log);
  const workshop: Workshop = { ...parts, lookUp, leftovers };
  const { mounts } = parts;
  return {
    scope: scopeIn(parts),
    create: createVolumeIn(workshop),
    remove: removeVolumeIn(workshop),
    async get(call, name) {
      const known = await lookUp(call, name);
      return known && describeVolume(known, await mountpointOf(mounts, name));
    },
    list: (call) => listVolumes(workshop, call),
    // Asks nobody: Docker wants to know this of volumes that are mounted, whatever became of their storage.
    path: (_call, name) => mountpointOf(mounts, name),
    mount: mountVolumeIn(workshop),
    unmount: unmountVolumeIn(workshop),
    leftovers,
  };
}

/** Milliseconds for which the scope is remembered: Docker asks for it several times with everything that it does. */
const scopeMs = 10_000;

function scopeIn({ scope, catalog }: VolumeDriverParts): VolumeDriver['scope'] {
  let told: { readonly scope: Scope; readonly until: number } | undefined;
  return async (call) => {
    if (scope) return scope;
    if (!told || told.until < performance.now()) {
      const found: Scope = (await catalog.isShared(call)) ? 'global' : 'local';
      told = { scope: found, until: performance.now() + scopeMs };
    }
    return told.scope;
  };
}

async function mountpointOf(mounts: MountRecords, name: string): Promise<string | undefined> {
  return (await mounts.mountOf(await mounts.read(name)))?.mountPoint;
}
