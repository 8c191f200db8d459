import { stat } from 'node:fs/promises';
import { deviceNumber } from '../../device-number.ts';
import type { HostPlaces } from './host-identity.ts';

/** Where the kernel's files are. Tests have their own. */
export interface NvmePlaces extends HostPlaces {
  readonly dev: string;
  /** `major:minor` of a device node; undefined when there is none. */
  readonly numberOf: (path: string) => Promise<string | undefined>;
}

export const kernelPlaces: Omit<NvmePlaces, 'hostRoot'> = {
  sysfs: '/sys',
  dev: '/dev',
  folder: '/etc/nvme',
  numberOf: async (path) => {
    const found = await stat(path).catch(() => undefined);
    return found?.isBlockDevice() || found?.isCharacterDevice() ? deviceNumber(found.rdev) : undefined;
  },
};
