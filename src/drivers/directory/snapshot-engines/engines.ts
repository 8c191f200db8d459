/** The table of all snapshot engines: what `driver` in a snapshot class can be. */
import { CallError } from '../../../core/errors.ts';
import type { SnapshotSpec } from '../../../core/volume.ts';
import type { Directory } from '../directory.ts';
import type { SnapshotDriver } from '../options.ts';
import { snapshotDrivers } from '../options.ts';
import type { SnapshotEngine } from './engine.ts';
import { createFilecopy } from './filecopy.ts';
import { createKopia } from './kopia.ts';
import { createRepositoryEngine } from './repository-engine.ts';
import { createRestic } from './restic.ts';

export type Engines = Readonly<Record<SnapshotDriver, SnapshotEngine>>;

/** Makes them; nothing is run before they are used. */
export function createEngines(directory: Directory): Engines {
  return {
    filecopy: createFilecopy(directory),
    restic: createRepositoryEngine(directory, createRestic(directory)),
    kopia: createRepositoryEngine(directory, createKopia(directory)),
  };
}

/** The engine that a snapshot is asked of. INVALID_ARGUMENT when there is no such. */
export function engineFor({ options }: Directory, engines: Engines, spec: SnapshotSpec): SnapshotEngine {
  const wanted = spec.parameters.driver || options.snapshots.default_driver || 'filecopy';
  const known = snapshotDrivers.find((name) => name === wanted);
  if (known) return engines[known];
  throw new CallError(
    'INVALID_ARGUMENT',
    `${JSON.stringify(wanted)} is not a snapshot driver: ${snapshotDrivers.join(', ')} are`,
  );
}

/** The engines whose snapshots are there to be listed: a repository that nobody has configured is not asked. */
export function enginesInUse({ options }: Directory, engines: Engines): readonly SnapshotEngine[] {
  const { snapshots } = options;
  return snapshotDrivers
    .filter((name) => name === 'filecopy' || name === snapshots.default_driver || snapshots[name] !== undefined)
    .map((name) => engines[name]);
}
