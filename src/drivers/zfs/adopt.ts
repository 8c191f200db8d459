/** What was made by hand, or by another program, becomes a volume. Nothing in it is touched. */
import { valueIn } from '../../backends/zfs/dataset.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Volume } from '../../core/volume.ts';
import { decodeName, isVolumeId } from '../common/volume-id.ts';
import { finishVolume } from './finish-volume.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';
import { isManaged, volumeProperties } from './volume-answer.ts';

/** `given`: the dataset, or its last part. */
export async function adoptDataset(store: ZfsStore, call: CallContext, given: string): Promise<Volume> {
  const { zfs, options, kind, driver, instanceId } = store;
  const parent = options.datasetParentName;
  const id = requireId(store, given.startsWith(`${parent}/`) ? given.slice(parent.length + 1) : given);
  const name = volumeDataset(store, id);
  const datasets = await zfs.read(call, {
    name,
    properties: volumeProperties(store),
    depth: 1,
    types: ['filesystem', 'volume'],
  });
  const dataset = datasets.find((one) => one.name === name);
  if (!dataset) throw new CallError('NOT_FOUND', `there is no ${name} on ${zfs.host}`);
  const refuse = (why: string) => new CallError('FAILED_PRECONDITION', `${name} on ${zfs.host} ${why}`);
  if (isManaged(dataset)) throw refuse('is a volume already');
  if (dataset.type !== kind) throw refuse(`is a ${dataset.type}, and volumes of ${driver} are ${kind}s`);
  if (datasets.length > 1) throw refuse(`has datasets below it, which no volume has: ${datasets[1]?.name}`);
  if (
    kind === 'filesystem' &&
    Object.keys(store.share.properties).length > 0 &&
    valueIn(dataset, 'mounted') !== 'yes'
  ) {
    throw refuse('is not mounted, so it cannot be shared');
  }
  // Throws before anything is changed when it has no place that could be shared.
  store.share.byProperties?.(dataset);
  store.share.check?.({ volumeId: id, dataset: name, parameters: {} });

  const marks = {
    [userProperties.volumeName]: decodeName(id) ?? id,
    [userProperties.managed]: 'true',
    [userProperties.driver]: driver,
    ...(instanceId && { [userProperties.instanceId]: instanceId }),
  };
  // All at once: half a volume that has data would be taken for one whose creation was interrupted.
  return await finishVolume(store, call, dataset, { permissions: 'no', marks });
}

function requireId(store: ZfsStore, id: string): string {
  const parent = store.options.datasetParentName;
  if (id.includes('/') || id.includes('@')) {
    throw new CallError('INVALID_ARGUMENT', `${id} is not directly below ${parent}: zfs rename it to ${parent}/NAME`);
  }
  if (!isVolumeId(id)) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `${JSON.stringify(id)} cannot be the id of a volume, which has letters, digits, _ and - only: zfs rename it`,
    );
  }
  if (id.length > store.naming.maxBytes) {
    throw new CallError('INVALID_ARGUMENT', `${id} has ${id.length} characters; ${store.naming.maxBytes} are possible`);
  }
  return id;
}
