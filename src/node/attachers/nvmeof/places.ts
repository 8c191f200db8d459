import { stat } from 'node:fs/promises';
import { deviceNode } from '../../device-node.ts';
import { deviceNumber } from '../../device-number.ts';
import type { HostPlaces } from './host-identity.ts';

/** Where the kernel's files are. Tests have their own. */
export interface NvmePlaces extends HostPlaces {
  /** The device that connections are made with. */
  readonly fabrics: string;
  /** `major:minor` of a character device; undefined when there is none. */
  readonly numberOf: (path: string) => Promise<string | undefined>;
  /** The path of a block device. */
  readonly nodeOf: typeof deviceNode;
}

export const kernelPlaces: Omit<NvmePlaces, 'hostRoot'> = {
  sysfs: '/sys',
  fabrics: '/dev/nvme-fabrics',
  folder: '/etc/nvme',
  numberOf: async (path) => {
    const found = await stat(path).catch(() => undefined);
    return found?.isCharacterDevice() ? deviceNumber(found.rdev) : undefined;
  },
  nodeOf: deviceNode,
};
