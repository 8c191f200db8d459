/**
 * New volumes that are complete as soon as they are made: by one command, for what nodes need to know of the share is kept with the volume from the
 * beginning. What may be left to be done after a crash is seen by what is there.
 */
import type { Step, StepResult } from '../../backends/shell/steps.ts';
import { type Dataset, valueIn } from '../../backends/zfs/dataset.ts';
import { permissionSteps } from './permissions.ts';
import type { ZfsStore } from './store.ts';
import { asciiJson, userProperties } from './user-properties.ts';
import { idOf, parametersOf } from './volume-answer.ts';
import type { Properties } from './wanted-properties.ts';

export interface Birth {
  /** Those that a volume gets when nothing is left to be done for it. */
  readonly properties: Properties;
  /** What comes before the making: it does not end well when the volume would not be where nodes are told that it is, or is there already. */
  readonly before: readonly Step[];
  /** What follows the making. */
  readonly after: readonly Step[];
}

/** The folder in which volumes are mounted: once it is known, by one that is. */
const roots = new WeakMap<ZfsStore, string>();

/**
 * The folder in which volumes are mounted may have moved since it became known, and an old directory, or another file system, be at its place. Every
 * mounted file system of ZFS, and no other directory, has `.zfs` in it (zfsconcepts(7), "Snapshots"), which a shell sees without starting a program. What has
 * it after the volume was made, and had not before, is the volume.
 */
const isRoot = (path: string): Step => ({ argv: [path], body: '[ -d "$1/.zfs" ]' });
const isNoRoot = (path: string): Step => ({ argv: [path], body: '[ ! -d "$1/.zfs" ]' });

/** What decides where a file system is mounted, and whether it is. */
const mounting = ['mountpoint', 'canmount', 'zoned', 'jailed', 'overlay'];

/** `properties`: all that the volume is made with. Undefined when more has to be known, or more is to be done than is seen afterwards. */
export function birthOf(store: ZfsStore, name: string, properties: Properties): Birth | undefined {
  const { share, kind, options } = store;
  const [root, path] = [roots.get(store), mountPointFor(store, { name })];
  if (kind === 'filesystem' && (path === undefined || mounting.some((key) => Object.hasOwn(properties, key)))) {
    return undefined;
  }
  if ((options.datasetPermissionsAcls ?? []).length > 0) return undefined;
  const mountpoint = path === undefined ? {} : { mountpoint: { value: path, source: 'inherited' as const } };
  const shared = share.byProperties?.({ name, type: kind, properties: mountpoint });
  if (!shared) return undefined;
  const permissions = path === undefined ? [] : permissionSteps(store, path);
  return {
    properties: {
      ...shared.properties,
      [userProperties.shareContext]: asciiJson(shared.context),
      [userProperties.success]: 'true',
    },
    before: root === undefined || path === undefined ? [] : [isRoot(root), isNoRoot(path)],
    after:
      path === undefined ? [] : [isRoot(path), ...permissions, ...(permissions.length > 0 ? [kept(store, path)] : [])],
  };
}

/** What `zfs` itself does is on the disks when it ends. What was done to a directory is when ZFS writes next, which is some seconds later. */
function kept({ zfs }: ZfsStore, path: string): Step {
  return { argv: zfs.program('sync', '--', path) };
}

/** Where a volume's file system will be mounted; undefined while that is not known. */
export function mountPointFor(store: ZfsStore, dataset: Pick<Dataset, 'name'>): string | undefined {
  const root = roots.get(store);
  return store.kind === 'filesystem' && root !== undefined ? `${root}/${idOf(dataset)}` : undefined;
}

export function learnMountPoint(store: ZfsStore, dataset: Dataset): void {
  const { value = '', source } = dataset.properties.mountpoint ?? {};
  const end = `/${idOf(dataset)}`;
  if ((source === 'inherited' || source === 'default') && value.startsWith('/') && value.endsWith(end)) {
    roots.set(store, value.slice(0, -end.length));
  }
}

/**
 * A step that prints the paths of volumes that, although they are marked as complete, have not got their mode or owner: their creation was
 * interrupted. Its root directory is as ZFS makes it then, and nothing has been put into it. Empty when there is nothing that could be left.
 */
export function unfinishedLook(store: ZfsStore, ...paths: readonly string[]): readonly Step[] {
  const { datasetPermissionsMode: mode } = store.options;
  if (permissionSteps(store, '/').length === 0 || paths.length === 0) return [];
  // The mode is set last.
  const asMade = mode === undefined || mode === 0o755 ? ['-uid', '0', '-gid', '0'] : ['-perm', '0755'];
  return [{ argv: store.zfs.program('find', ...paths, '-maxdepth', '0', '-empty', ...asMade), goOn: 'any' }];
}

/** `path`: where was looked. Only what was made here as a new volume can be unfinished in this way, and is seen only where it is mounted. */
export function isUnfinished(dataset: Dataset, path: string, result: StepResult | undefined): boolean {
  const isThere = valueIn(dataset, 'mounted') === 'yes' && valueIn(dataset, 'mountpoint') === path;
  const isEmpty = result?.stdout.split('\n').includes(path) === true;
  return isEmpty && isThere && parametersOf(dataset) !== undefined;
}
