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

export function describeVolume(known: KnownVolume, mountpoint: string | undefined): ShownVolume {
  const { facts, connection, condition, trouble } = known;
  return {
    Name: facts.name,
    Mountpoint: mountpoint ?? '',
    ...(facts.createdAt !== undefined && { CreatedAt: facts.createdAt }),
    Status: {
      id: facts.volumeId,
      ...(connection !== undefined && { connection }),
      ...(facts.capacityBytes > 0 && { size: formatSize(facts.capacityBytes) }),
      ...(condition && { condition: `${condition.abnormal ? 'abnormal: ' : ''}${condition.message}` }),
      ...(trouble && { unreachable: `as last known; ${trouble.message}` }),
      ...(!facts.made && { note: 'not made by Docker; docker volume rm leaves it alone' }),
    },
  };
}
