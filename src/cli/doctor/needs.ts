/** What the connections need of this host. */
import type { MountTable } from '../../node/mount-table.ts';
import type { ConfiguredConnection } from './configured.ts';
import type { Need } from './program-table.ts';

/** By need, the names of the connections that have it. */
export type Needs = ReadonlyMap<Need, readonly string[]>;

/** Drivers are families: what their volumes are attached by is in their name. */
const byDriverName: readonly (readonly [RegExp, readonly Need[]])[] = [
  [/(^|-)nfs(-|$)/, ['nfs']],
  [/(^|-)smb(-|$)/, ['smb']],
  [/^lustre-/, ['lustre']],
  [/(^|-)iscsi(-|$)/, ['iscsi', 'disks']],
  [/(^|-)nvmeof(-|$)/, ['nvmeof', 'disks']],
  [/^zfs-local-/, ['zfs']],
  [/^zfs-local-zvol$/, ['disks']],
  [/^objectivefs$/, ['objectivefs']],
  [/onedata|oneclient/, ['oneclient']],
];

const directoryDrivers = /^local-hostpath$|^(nfs|smb|lustre)-client$/;

export function needsOf(
  connections: readonly ConfiguredConnection[],
  modes: { readonly controller: boolean; readonly node: boolean },
  mounts: MountTable,
): Needs {
  const needs = new Map<Need, string[]>();
  const add = (need: Need, name: string) => needs.set(need, [...new Set([...(needs.get(need) ?? []), name])]);
  for (const { name, driver, basePath, controllerMount, quota, repositories } of connections) {
    const mountsHere = modes.node || (modes.controller && controllerMount === 'auto');
    if (modes.controller && directoryDrivers.test(driver)) add('directories', name);
    if (modes.controller && quota && basePath !== undefined) {
      add(mounts.covering(basePath)?.fsType === 'xfs' ? 'xfs quota' : 'ext4 quota', name);
    }
    for (const need of ['restic', 'kopia'] as const) {
      if (modes.controller && repositories.includes(need)) add(need, name);
    }
    // A pool of this machine is for making volumes as well as for mounting them.
    for (const [pattern, found] of byDriverName) {
      for (const need of pattern.test(driver) ? found : []) if (mountsHere || need === 'zfs') add(need, name);
    }
    if (mountsHere) add('mounts', name);
  }
  return needs;
}

/** The connections that have any of these needs. */
export function whoNeeds(needs: Needs, wanted: readonly Need[]): readonly string[] {
  return [...new Set(wanted.flatMap((need) => needs.get(need) ?? []))];
}

/** `connection nas`, `connections nas and fast`. */
export function connectionsText(names: readonly string[]): string {
  const shown = names.length > 3 ? [...names.slice(0, 3), `${names.length - 3} more`] : names;
  const last = shown.at(-1);
  return shown.length === 1 ? `connection ${last}` : `connections ${shown.slice(0, -1).join(', ')} and ${last}`;
}
