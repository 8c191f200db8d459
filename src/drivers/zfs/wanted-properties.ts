/** The properties that a new volume is made with. */
import { CallError } from '../../core/errors.ts';
import type { VolumeSpec } from '../../core/volume.ts';
import { parameter } from '../common/parameters.ts';
import { blockBytes } from './options.ts';
import type { ZfsStore } from './store.ts';
import { asciiJson, userProperties } from './user-properties.ts';

export type Properties = Readonly<Record<string, string>>;

/** zfsprops(7): no clone can have another one than its origin. */
const fixedAtBirth: ReadonlySet<string> = new Set([
  'aclmode',
  'aclinherit',
  'acltype',
  'casesensitivity',
  'normalization',
  'utf8only',
  'volblocksize',
]);

/** Everything that marks a dataset as this volume, but that it is complete. */
export function markingProperties(store: ZfsStore, spec: VolumeSpec, sizeBytes: number): Properties {
  const { source, parameters } = spec;
  return {
    [userProperties.volumeName]: spec.name,
    [userProperties.managed]: 'true',
    [userProperties.driver]: store.driver,
    ...(store.instanceId && { [userProperties.instanceId]: store.instanceId }),
    ...(source && { [userProperties.sourceType]: source.type, [userProperties.sourceId]: source.id }),
    [userProperties.parameters]: asciiJson(parameters),
    [userProperties.size]: String(sizeBytes),
  };
}

/** What the connection and the class ask for. Throws INVALID_ARGUMENT for a class property that is not allowed to be one. */
export function chosenProperties(store: ZfsStore, spec: VolumeSpec, of: 'new' | 'clone' | 'copy'): Properties {
  const { options, kind } = store;
  const { parameters } = spec;
  const configured = Object.entries(options.datasetProperties ?? {}).map(([key, template]) => {
    return [key, store.render(template, { name: spec.name, parameters })] as const;
  });
  const all = Object.fromEntries([
    ...configured,
    ...(kind === 'volume' ? zvolProperties(store) : []),
    ...classProperties(store, parameters),
    ...Object.entries(store.share.properties),
  ]);
  if (of === 'new') return all;
  return Object.fromEntries(Object.entries(all).filter(([key]) => !fixedAtBirth.has(key)));
}

/** What keeps a volume to its size. A zvol's own size is given in other ways. */
export function sizeProperties(store: ZfsStore, sizeBytes: number): Properties {
  const { options, kind } = store;
  if (kind === 'volume') return {};
  return {
    ...(options.datasetEnableQuotas && { refquota: String(sizeBytes) }),
    ...(options.datasetEnableReservation && { refreservation: String(sizeBytes) }),
  };
}

/** Bytes of the blocks of a new zvol of this class. */
export function volumeBlockBytes(store: ZfsStore, parameters: VolumeSpec['parameters']): number {
  const asked = blockSizeParameter(store, parameters);
  return blockBytes(asked ?? store.options.zvolBlocksize);
}

function zvolProperties({ options }: ZfsStore): readonly (readonly [string, string])[] {
  return [
    ...(options.zvolEnableReservation ? [] : [['refreservation', '0'] as const]),
    ...(options.zvolCompression ? [['compression', options.zvolCompression] as const] : []),
    ...(options.zvolDedup ? [['dedup', options.zvolDedup] as const] : []),
  ];
}

function classProperties(
  store: ZfsStore,
  parameters: VolumeSpec['parameters'],
): readonly (readonly [string, string])[] {
  const scope = { driver: store.driver, instanceId: store.instanceId };
  return store.options.classProperties.flatMap((key) => {
    const value = key === 'volblocksize' ? undefined : parameter(parameters, key, scope);
    // A block size of files means nothing to a block device, and classes are shared between drivers.
    if (value === undefined || (store.kind === 'volume' && key === 'recordsize')) return [];
    return [[key, value] as const];
  });
}

function blockSizeParameter(store: ZfsStore, parameters: VolumeSpec['parameters']): string | undefined {
  const scope = { driver: store.driver, instanceId: store.instanceId };
  const text = parameter(parameters, 'zvolBlocksize', scope) ?? parameter(parameters, 'volblocksize', scope);
  if (text === undefined) return undefined;
  const size = text.toUpperCase().replace(/B$/, '');
  const bytes = /^\d+K?$/.test(size) ? blockBytes(size) : Number.NaN;
  if (bytes >= 512 && bytes <= 2 ** 17 && Number.isInteger(Math.log2(bytes))) return size;
  throw new CallError(
    'INVALID_ARGUMENT',
    `zvolBlocksize ${JSON.stringify(text)} is not a power of two from 512 to 128K`,
  );
}

/** As arguments of `zfs create` and `zfs clone`. */
export function asOptions(properties: Properties): readonly string[] {
  return Object.entries(properties).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
}

/** As arguments of `zfs set`. */
export function asAssignments(properties: Properties): readonly string[] {
  return Object.entries(properties).map(([key, value]) => `${key}=${value}`);
}
