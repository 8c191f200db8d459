/** A dataset as the volume that it is. */
import { type Dataset, numberOf, ownValue, valueIn } from '../../backends/zfs/dataset.ts';
import type { Condition, ContentSource, Parameters, Volume, VolumeContext, VolumeStatus } from '../../core/volume.ts';
import { formatOptions } from '../../node/file-systems/format-options.ts';
import { parameter } from '../common/parameters.ts';
import type { ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';

/** What has to be read of a dataset for the functions here. */
export function volumeProperties(store: ZfsStore): readonly string[] {
  const size = store.kind === 'volume' ? ['volsize', 'volblocksize'] : ['refquota', 'mountpoint', 'mounted'];
  return [
    ...new Set(['available', 'receive_resume_token', ...size, ...Object.values(userProperties), ...store.share.wants]),
  ];
}

/** Whether it was made as a volume, and is one of its own, not something below one. */
export function isManaged(dataset: Dataset): boolean {
  return ownValue(dataset, userProperties.managed) === 'true';
}

/** Whether nothing is left to be done for it. */
export function isComplete(dataset: Dataset): boolean {
  return ownValue(dataset, userProperties.success) === 'true' && shareContextOf(dataset) !== undefined;
}

/** Undefined when it was never kept, or cannot be read. */
export function shareContextOf(dataset: Dataset): VolumeContext | undefined {
  return readStrings(ownValue(dataset, userProperties.shareContext));
}

/** The parameters of the request that made it; undefined when they are not kept. */
export function parametersOf(dataset: Dataset): Parameters | undefined {
  return readStrings(ownValue(dataset, userProperties.parameters));
}

export function sourceOf(dataset: Dataset): ContentSource | undefined {
  const type = ownValue(dataset, userProperties.sourceType);
  const id = ownValue(dataset, userProperties.sourceId);
  return id !== undefined && (type === 'snapshot' || type === 'volume') ? { type, id } : undefined;
}

/** Bytes; zero when nothing keeps the volume to a size. */
export function capacityOf(store: ZfsStore, dataset: Dataset): number {
  if (store.kind === 'volume') return numberOf(dataset, 'volsize') ?? 0;
  return store.options.datasetEnableQuotas ? (numberOf(dataset, 'refquota') ?? 0) : 0;
}

/** Bytes that were asked for; undefined when that is not known. A volume that is not complete may still have its source's size. */
export function sizeOf(store: ZfsStore, dataset: Dataset): number | undefined {
  const kept = ownValue(dataset, userProperties.size);
  const wanted = kept !== undefined && /^\d+$/.test(kept) ? Number(kept) : undefined;
  const enforced = capacityOf(store, dataset) || undefined;
  return isComplete(dataset) ? (enforced ?? wanted) : (wanted ?? enforced);
}

/** What nodes have to know of the class when they make the file system of a zvol. */
function formatContext({ kind, driver, instanceId }: ZfsStore, parameters: Parameters = {}): VolumeContext {
  const options = kind === 'volume' ? parameter(parameters, formatOptions, { driver, instanceId }) : undefined;
  return options ? { [formatOptions]: options } : {};
}

export function volumeOf(store: ZfsStore, dataset: Dataset): Volume {
  const { driver, instanceId, topology } = store;
  return {
    id: idOf(dataset),
    capacityBytes: capacityOf(store, dataset),
    context: {
      ...shareContextOf(dataset),
      ...formatContext(store, parametersOf(dataset)),
      provisioner_driver: driver,
      ...(instanceId && { provisioner_driver_instance_id: instanceId }),
    },
    source: sourceOf(dataset),
    topology: topology && [topology],
  };
}

export interface Around {
  /** What `zpool list` says of the pool, such as `ONLINE`. */
  readonly poolHealth?: string | undefined;
  /** What is wrong on the server that shares it. */
  readonly trouble?: string | undefined;
}

export function statusOf(store: ZfsStore, dataset: Dataset, around: Around): VolumeStatus {
  return {
    volume: volumeOf(store, dataset),
    condition: conditionOf(store, dataset, around),
    parameters: parametersOf(dataset),
  };
}

function conditionOf(store: ZfsStore, dataset: Dataset, { poolHealth, trouble }: Around): Condition {
  if (poolHealth !== undefined && poolHealth !== 'ONLINE') {
    return { abnormal: true, message: `the pool of ${dataset.name} is ${poolHealth}` };
  }
  if (!isComplete(dataset)) return { abnormal: true, message: 'its creation has not come to its end' };
  if (
    store.kind === 'filesystem' &&
    valueIn(dataset, 'mounted') === 'no' &&
    valueIn(dataset, 'mountpoint') !== 'legacy'
  ) {
    return { abnormal: true, message: `${dataset.name} is not mounted on ${store.zfs.host}` };
  }
  if (trouble !== undefined) return { abnormal: true, message: trouble };
  return store.share.conditionOf?.(dataset) ?? { abnormal: false, message: 'the dataset is there' };
}

/** The last part of a dataset's name. */
export function idOf({ name }: Pick<Dataset, 'name'>): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

function readStrings(json: string | undefined): Readonly<Record<string, string>> | undefined {
  if (json === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)]));
  } catch {
    return undefined;
  }
}
