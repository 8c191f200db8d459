/** A driver whose volumes are folders below a base path. */
import type { Driver } from '../../core/driver.ts';
import { directoryCapacity } from './capacity.ts';
import type { Directory } from './directory.ts';
import { expandVolume } from './expand-volume.ts';
import { directorySnapshots } from './snapshots.ts';
import { createSweeper } from './sweep.ts';
import { directoryVolumes } from './volumes.ts';

/** Everything of a directory driver but its name and its node operations. */
export function directoryOperations(
  directory: Directory,
): Required<Pick<Driver, 'volumes' | 'snapshots' | 'expansion' | 'capacity' | 'close'>> {
  const sweeper = createSweeper(directory);
  return {
    volumes: directoryVolumes(directory, sweeper),
    snapshots: directorySnapshots(directory, sweeper),
    expansion: {
      mode: 'ONLINE',
      async expand(call, request) {
        await sweeper.sweep(call);
        return await expandVolume(directory, call, request);
      },
    },
    capacity: (_call, query) => directoryCapacity(directory, query),
    close: () => sweeper.close(),
  };
}
