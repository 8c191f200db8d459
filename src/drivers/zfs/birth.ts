/**
 * New volumes that are complete as soon as they are made: by one command, for what nodes need to know of the share is kept with the volume from the
 * beginning. What may be left to be done after a crash is seen by what is there.
 */
import type { Step, StepResult } from '../../backends/shell/steps.ts';
import type { Dataset } from '../../backends/zfs/dataset.ts';
import { permissionSteps } from './permissions.ts';
import type { ZfsStore } from './store.ts';
import { asciiJson, userProperties } from './user-properties.ts';
import { idOf } from './volume-answer.ts';
import type { Properties } from './wanted-properties.ts';

export interface Birth {
  /** Those that a volume gets when nothing is left to be done for it. */
  readonly properties: Properties;
  /** What follows the making. */
  readonly steps: readonly Step[];
}

/** The folder in which volumes are mounted: once it is known, by one that is. */
const roots = new WeakMap<ZfsStore, string>();

/** What decides where a file system is mounted, and whether it is. */
const mounting = ['mountpoint', 'canmount', 'zoned', 'jailed', 'overlay'];

/** `properties`: all that the volume is made with. Undefined when more has to be known, or more is to be done than is seen afterwards. */
export function birthOf(store: ZfsStore, name: string, properties: Properties): Birth | undefined {
  const { share, kind, options } = store;
  const path = mountPointFor(store, { name });
  if (kind === 'filesystem' && (path === undefined || mounting.some((key) => Object.hasOwn(properties, key)))) {
    return undefined;
  }
  if ((options.datasetPermissionsAcls ?? []).length > 0) return undefined;
  const mountpoint = path === undefined ? {} : { mountpoint: { value: path, source: 'inherited' as const } };
  const shared = share.byProperties?.({ name, type: kind, properties: mountpoint });
  if (!shared) return undefined;
  return {
    properties: {
      ...shared.properties,
      [userProperties.shareContext]: asciiJson(shared.context),
      [userProperties.success]: 'true',
    },
    // The folder may have moved since it became known.
    steps: path === undefined ? [] : [{ argv: [path], body: '[ -d "$1" ]' }, ...permissionSteps(store, path)],
  };
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
 * A step that prints something when the volume at this path, although it is marked as complete, has not got its mode or owner: its creation was
 * interrupted. Its root directory is as ZFS makes it then, and nothing has been put into it. Empty when there is nothing that could be left.
 */
export function unfinishedLook(store: ZfsStore, path: string): readonly Step[] {
  const { datasetPermissionsMode: mode } = store.options;
  if (permissionSteps(store, path).length === 0) return [];
  // The mode is set last.
  const asMade = mode === undefined || mode === 0o755 ? ['-uid', '0', '-gid', '0'] : ['-perm', '0755'];
  return [{ argv: store.zfs.program('find', path, '-maxdepth', '0', '-empty', ...asMade), goOn: 'any' }];
}

export function isUnfinished(result: StepResult | undefined): boolean {
  return result !== undefined && result.code === 0 && result.stdout.trim() !== '';
}
