/**
 * Where a file of this process's root is found from another root, and which mounts made there are seen here.
 *
 * An orchestrator gives a plugin paths of the plugin's own root. A program that runs in the host's root has to be told of the same files by
 * other names, and it depends on how the plugin was set up whether it can reach them at all:
 *
 * - A Kubernetes pod has the kubelet's directory at the same path as the host, and the host's root at /host. Names are the same, and a mount
 *   made below /host is seen by the kubelet and by this process if /host is mounted with `mountPropagation: Bidirectional`.
 * - A managed plugin of Docker has the host's /var/lib/docker/plugins/<id>/propagated-mount at the path that `propagatedMount` names (/data for
 *   Swarm), so names differ. With the option rshared for /host, mounts made there are seen.
 * - A docker task of Nomad has the host's <data_dir>/client/csi/<type>/<plugin> at `stage_publish_base_dir` (/local/csi): names differ, unless
 *   it is set to that very path. /host needs the propagation rshared here too; Nomad and Docker make it private otherwise.
 *
 * The kernel's mount table knows all that: the same file system and the same place in it are the same file, and mounts of one peer group, or
 * of a group and its followers, show what is mounted upon each other. Without such a mount a program has to stay in this root (borrow.ts).
 */
import { join, relative } from 'node:path/posix';

export interface PlacedMount {
  readonly id: number;
  /** `major:minor` */
  readonly device: string;
  /** Path within the file system. */
  readonly root: string;
  readonly mountPoint: string;
  readonly peerGroup?: number | undefined;
  readonly master?: number | undefined;
}

export interface PlacedMounts {
  readonly mounts: readonly PlacedMount[];
  /** The mount whose files are seen at a path. */
  covering(path: string): PlacedMount | undefined;
}

export interface TwoRoots {
  /** The mounts of this process. */
  readonly here: PlacedMounts;
  /** The mounts of the namespace that the other root is in: for chroot the same. */
  readonly there: PlacedMounts;
  /** The other root within that namespace. */
  readonly root: string;
}

/** The path of the same file in the other root; undefined when it cannot be reached there. `path` is absolute and free of symbolic links. */
export function pathThere(path: string, roots: TwoRoots): string | undefined {
  return candidates(path, roots)[0]?.path;
}

/** The path in the other root where something can be mounted or unmounted so that it is seen at `path` here; undefined when there is none. */
export function placeThere(path: string, roots: TwoRoots): string | undefined {
  // What is mounted at the path itself belongs to the directory that it is mounted in.
  const parent = candidates(parentOf(path), roots).find((one) => one.isSeenHere);
  return parent && join(parent.path, path.slice(path.lastIndexOf('/') + 1));
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

/** Whether what is mounted at `path` here is seen in the other root too, as what is mounted there is seen here. */
export function isSharedPlace(path: string, roots: TwoRoots): boolean {
  return candidates(parentOf(path), roots).some((one) => one.isSeenThere);
}

interface Candidate {
  readonly path: string;
  readonly isSeenHere: boolean;
  readonly isSeenThere: boolean;
  /** How much of the file system its mount shows: the smaller part is the likelier one to be meant. */
  readonly depth: number;
}

function candidates(path: string, { here, there, root }: TwoRoots): readonly Candidate[] {
  const own = here.covering(path);
  if (!own) return [];
  const inFileSystem = join(own.root, relative(own.mountPoint, path));
  const found = there.mounts.flatMap((mount): Candidate[] => {
    if (mount.device !== own.device || !isWithin(inFileSystem, mount.root)) return [];
    const at = join(mount.mountPoint, relative(mount.root, inFileSystem));
    // It may be hidden below another mount.
    if (!isWithin(at, root) || there.covering(at) !== mount) return [];
    const seen = { isSeenHere: isSeenOn(own, mount), isSeenThere: isSeenOn(mount, own) };
    return [{ path: `/${relative(root, at)}`, ...seen, depth: mount.root.length }];
  });
  const rank = (one: Candidate) => (one.isSeenHere ? 2 : 0) + (one.path === path ? 1 : 0);
  return found.toSorted((one, other) => rank(other) - rank(one) || other.depth - one.depth);
}

/** Whether what is mounted upon `other` appears upon `own`, mount_namespaces(7). */
function isSeenOn(own: PlacedMount, other: PlacedMount): boolean {
  if (own.id === other.id) return true;
  return other.peerGroup !== undefined && [own.peerGroup, own.master].includes(other.peerGroup);
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || directory === '/' || path.startsWith(`${directory}/`);
}
