import { formatSize } from '../../core/sizes.ts';
import type { KnownVolume } from './look-up.ts';

/** A volume as Docker's protocol has it. */
export interface ShownVolume {
  readonly Name: string;
  readonly Mountpoint: string;
  /** RFC 3339. */
  readonly CreatedAt?: string;
  /** Free text for `docker volume inspect`. */
  readonly Status: Readonly<Record<string, string>>;
}

export function describeVolume(volume: KnownVolume, mountpoint: string | undefined): ShownVolume {
  const { connection, condition, trouble, capacityBytes } = volume;
  return {
    Name: volume.name,
    Mountpoint: mountpoint ?? '',
    ...(volume.createdAt !== undefined && { CreatedAt: volume.createdAt }),
    Status: {
      id: volume.volumeId,
      ...(connection !== undefined && { connection }),
      ...(capacityBytes > 0 && { size: formatSize(capacityBytes) }),
      ...(condition && { condition: `${condition.abnormal ? 'abnormal: ' : ''}${condition.message}` }),
      ...(trouble && { unreachable: `as last known; ${trouble.message}` }),
      ...(!volume.made && { note: 'not made by Docker; docker volume rm leaves it alone' }),
    },
  };
}
