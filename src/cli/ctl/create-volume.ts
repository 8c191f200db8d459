/** CreateVolume from the options of a command line. */
import type { Init, VolumeContentSource } from '../../generated/csi.js';
import { services } from '../../generated/services.js';
import { readSecrets } from '../pairs.ts';
import { UsageError } from '../usage-error.ts';
import { capabilityFrom, capacityFrom } from './arguments.ts';
import type { Session } from './session.ts';
import { type ShownVolume, volumeShape } from './shapes.ts';
import { type CreateOptions, parametersOf } from './volume-options.ts';

/** Makes a volume, or finds the one that the same command made before. */
export async function createVolume(session: Session, name: string, options: CreateOptions): Promise<ShownVolume> {
  const { volume } = await session.call(`creating ${name}`, services.Controller.CreateVolume, {
    name,
    capacityRange: capacityFrom(options.size, options.limit),
    volumeCapabilities: [capabilityFrom(options)],
    parameters: parametersOf(options),
    secrets: await readSecrets(options.secret),
    volumeContentSource: sourceFrom(options),
    accessibilityRequirements: options.topology && {
      requisite: options.topology.map((segments) => ({ segments })),
      preferred: options.topology.map((segments) => ({ segments })),
    },
  });
  if (volume === undefined) throw new Error('the plugin answered CreateVolume without a volume');
  return volumeShape(volume);
}

function sourceFrom({ fromSnapshot, fromVolume }: CreateOptions): Init<VolumeContentSource> | undefined {
  if (fromSnapshot !== undefined && fromVolume !== undefined) {
    throw new UsageError('a volume is made from a snapshot or from a volume, not from both');
  }
  if (fromSnapshot !== undefined) return { snapshot: { snapshotId: fromSnapshot } };
  return fromVolume === undefined ? undefined : { volume: { volumeId: fromVolume } };
}
