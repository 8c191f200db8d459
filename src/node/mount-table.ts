/** The kernel's list of mounts, proc_pid_mountinfo(5): the one source of truth about what is mounted where. */
import { readWhole } from './read-whole.ts';

export interface Mount {
  readonly id: number;
  readonly parentId: number;
  /** `major:minor` of the file system. Some file systems (btrfs, NFS, tmpfs …) have an anonymous one, with major 0. */
  readonly device: string;
  /** The path within the file system that is visible at the mount point. Ends with `//deleted` when that directory is gone. */
  readonly root: string;
  readonly mountPoint: string;
  /** Mounts of one peer group show what is mounted upon each other. Undefined: private. */
  readonly peerGroup?: number | undefined;
  /** The peer group that this mount follows: it shows what is mounted there. */
  readonly master?: number | undefined;
  /** Options of this mount: `ro`, `nosuid` … */
  readonly options: readonly string[];
  readonly fsType: string;
  /** What was mounted: a device, `server:/path`, or any word. */
  readonly source: string;
  /** Options of the file system, common to all its mounts. */
  readonly superOptions: readonly string[];
}

export interface MountTable {
  readonly mounts: readonly Mount[];
  /** The mount whose files are seen at `path`, found as the kernel walks the path. The path must be absolute and free of symbolic links. */
  covering(path: string): Mount | undefined;
  /** The visible mount at exactly this path: the top one when several are stacked. */
  at(path: string): Mount | undefined;
  /** All mounts stacked at exactly this path, top first. */
  stackAt(path: string): readonly Mount[];
  /** The table as it is after this mount was unmounted. */
  without(mount: Mount): MountTable;
}

const readMountInfo = readWhole('/proc/self/mountinfo');

/** The mounts of this process's mount namespace as they are now. */
export async function readMountTable(): Promise<MountTable> {
  return parseMountTable(await readMountInfo());
}

/** Lines that are not mountinfo lines are left out. Never throws. */
export function parseMountTable(text: string): MountTable {
  return tableOf(text.split('\n').flatMap((line) => parseLine(line) ?? []));
}

function tableOf(mounts: readonly Mount[]): MountTable {
  let children: Map<number, Mount[]> | undefined;

  const covering = (path: string): Mount | undefined => {
    children ??= childrenByParent(mounts);
    let current: Mount | undefined;
    // No walk is longer than the table, whatever nonsense its parents make.
    for (let left = mounts.length; left > 0; left--) {
      const next = crossed(children.get(current?.id ?? rootless), path);
      if (!next) break;
      current = next;
    }
    return current;
  };
  const stackAt = (path: string): Mount[] => {
    const stack: Mount[] = [];
    for (let mount = covering(path); mount?.mountPoint === path; ) {
      stack.push(mount);
      const parentId: number = mount.parentId;
      mount = mounts.find((one) => one.id === parentId && !stack.includes(one));
    }
    return stack;
  };
  return {
    mounts,
    covering,
    stackAt,
    at: (path) => stackAt(path)[0],
    without: (mount) => tableOf(mounts.filter((one) => one !== mount)),
  };
}

/** Whether `path` is `directory` or lies below it. Both absolute. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || directory === '/' || path.startsWith(`${directory}/`);
}

/** The key of mounts whose parent is not in the table: the root, or all of them within a chroot. */
const rootless = -1;

function childrenByParent(mounts: readonly Mount[]): Map<number, Mount[]> {
  const ids = new Set(mounts.map((mount) => mount.id));
  const children = new Map<number, Mount[]>();
  for (const mount of mounts) {
    const known = ids.has(mount.parentId) && mount.parentId !== mount.id;
    const key = known ? mount.parentId : rootless;
    const siblings = children.get(key);
    if (siblings) siblings.push(mount);
    else children.set(key, [mount]);
  }
  return children;
}

/** Of the mounts upon one mount, the one that a walk along `path` comes to first; of several at one place, the newest. */
function crossed(children: readonly Mount[] | undefined, path: string): Mount | undefined {
  let first: Mount | undefined;
  for (const mount of children ?? []) {
    if (!isWithin(path, mount.mountPoint)) continue;
    if (!first || mount.mountPoint.length <= first.mountPoint.length) first = mount;
  }
  return first;
}

/** `36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda rw`, with any number of optional fields before the dash. */
function parseLine(line: string): Mount | undefined {
  const fields = line.split(' ');
  const dash = fields.indexOf('-', 6);
  const [id, parentId, device, root, mountPoint, options] = fields;
  const fsType = fields[dash + 1];
  if (dash < 0 || !id || !parentId || !device || !root || !mountPoint || options === undefined || !fsType)
    return undefined;
  if (!/^\d+$/.test(id) || !/^\d+$/.test(parentId) || !/^\d+:\d+$/.test(device)) return undefined;
  return {
    id: Number(id),
    parentId: Number(parentId),
    device,
    root: unescaped(root),
    mountPoint: unescaped(mountPoint),
    peerGroup: tagged(fields, dash, 'shared:'),
    master: tagged(fields, dash, 'master:'),
    options: options.split(','),
    fsType: unescaped(fsType),
    source: unescaped(fields[dash + 2] ?? ''),
    superOptions: (fields[dash + 3] ?? '').split(','),
  };
}

/** The number in an optional field such as `shared:1`. */
function tagged(fields: readonly string[], dash: number, tag: string): number | undefined {
  for (let index = 6; index < dash; index++) {
    if (fields[index]?.startsWith(tag)) return Number(fields[index]?.slice(tag.length));
  }
  return undefined;
}

/** Space, tab, newline, backslash and others are written as `\` and three octal digits. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
