/**
 * CreateVolume. What makes the dataset and what reads it go in one round trip, what is left to be done in another: sharing it, permissions, and the
 * mark that it is complete, which is set last. A repeated request finds at which of these the first one ended.
 */

import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, valueIn } from '../../backends/zfs/dataset.ts';
import { failureKind, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import type { Volume, VolumeSpec } from '../../core/volume.ts';
import { requireCapabilities } from '../common/capability-check.ts';
import { chooseSize, fitsRange, requireRange } from '../common/capacity.ts';
import { sameParameters } from '../common/parameters.ts';
import { requireHere } from '../common/reach.ts';
import { volumeId } from '../common/volume-id.ts';
import { fillFromSource, openSource, type ZfsSource } from './fill.ts';
import { finishVolume } from './finish-volume.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { isComplete, isManaged, parametersOf, sizeOf, sourceOf, volumeOf, volumeProperties } from './volume-answer.ts';
import {
  asOptions,
  chosenProperties,
  markingProperties,
  sizeProperties,
  volumeBlockBytes,
} from './wanted-properties.ts';

/** Makes a volume, or answers with the one that an equal request made before. */
export async function createVolume(store: ZfsStore, call: CallContext, spec: VolumeSpec): Promise<Volume> {
  const id = volumeId(spec, store.naming);
  requireCapabilities(spec.capabilities, store.rules);
  if (Object.keys(spec.mutableParameters).length > 0) {
    throw new CallError('INVALID_ARGUMENT', 'this driver has no mutable parameters');
  }
  if (store.topology) requireHere(spec.topology, store.topology);
  requireRange(spec.capacity);
  store.share.check?.({ volumeId: id, dataset: volumeDataset(store, id), parameters: spec.parameters });

  const found = spec.source ? await filled(store, call, spec, id) : await made(store, call, spec, id);
  const { dataset, isNew } = found;
  requireSame(store, dataset, spec);
  const isMounted = valueIn(dataset, 'mounted') !== 'no';
  if (isComplete(dataset) && isMounted) return volumeOf(store, dataset);
  const { parameters } = spec;
  return await finishVolume(store, call, dataset, { permissions: true, parameters, isShared: isNew && isMounted });
}

interface Found {
  readonly dataset: Dataset;
  /** Made by this very call, by commands that ended well. */
  readonly isNew: boolean;
}

/** A new, empty volume, or the one that is there. */
async function made(store: ZfsStore, call: CallContext, spec: VolumeSpec, id: string): Promise<Found> {
  const { zfs } = store;
  const name = volumeDataset(store, id);
  const sizeBytes = roundedSize(store, spec, 0);
  const size =
    store.kind === 'volume' ? ['-b', String(volumeBlockBytes(store, spec.parameters)), '-V', String(sizeBytes)] : [];
  const properties = {
    ...chosenProperties(store, spec, 'new'),
    ...sizeProperties(store, sizeBytes),
    ...markingProperties(store, spec, sizeBytes),
  };
  const reading = await zfs.reading(call, { name, properties: volumeProperties(store) });
  const create: Step = { argv: zfs.zfs('create', ...size, ...asOptions(properties), name), goOn: 'any' };
  let [result, state] = await zfs.run(call, 'zfs create', [create, { argv: reading.argv }]);
  if (result.code !== 0 && state?.code !== 0 && failureKind(result) === 'missing') {
    // The first volume of all: what is above is not there yet. Another call may make it at this moment, and must not mount it over this volume.
    const above = store.options.datasetParentName;
    const parent: Step = { argv: zfs.zfs('create', '-p', above), goOn: 'any' };
    const mount: Step = { argv: zfs.zfs('mount', above), goOn: 'any' };
    const results = await zfs.run(call, 'zfs create', [parent, mount, create, { argv: reading.argv }]);
    [, , result = results[0], state] = results;
    if (state?.code !== 0 && failureKind(result) === 'missing') {
      throw new StepFailed(zfs.host, `zfs create -p ${above}`, results[0]);
    }
  }
  // Whether it was made now or before is told by what is there, not by what was said.
  if (state?.code !== 0)
    throw new StepFailed(zfs.host, `zfs create ${name}`, result.code === 0 ? (state ?? result) : result);
  return { dataset: only(reading.datasets(state), name), isNew: result.code === 0 };
}

async function filled(store: ZfsStore, call: CallContext, spec: VolumeSpec, id: string): Promise<Found> {
  const source = await openSource(store, call, spec, id);
  if (source.target) {
    if (source.isCopied && source.isTemporary && !isComplete(source.target)) {
      // Left when an earlier call was interrupted right after the copy was whole.
      const { zfs } = store;
      await zfs.run(call, 'zfs destroy', [{ argv: zfs.zfs('destroy', '-d', source.snapshot), goOn: 'any' }]);
    }
    return { dataset: source.target, isNew: false };
  }
  const sizeBytes = roundedSize(store, spec, source.sizeBytes);
  const dataset = await fillFromSource(store, call, spec, id, source as ZfsSource, sizeBytes);
  return { dataset, isNew: true };
}

/** Bytes: what is asked for, at least what the content needs; for a block device a multiple of its blocks. Throws OUT_OF_RANGE. */
function roundedSize(store: ZfsStore, spec: VolumeSpec, least: number): number {
  const bytes = chooseSize(spec.capacity, least);
  if (store.kind === 'filesystem') return bytes;
  const block = volumeBlockBytes(store, spec.parameters);
  const rounded = Math.ceil(bytes / block) * block;
  if (fitsRange(rounded, spec.capacity)) return rounded;
  throw new CallError('OUT_OF_RANGE', `${bytes} bytes are ${rounded} in blocks of ${block}, which is above the limit`);
}

/** Throws ALREADY_EXISTS when the volume of this name was made by another request. */
function requireSame(store: ZfsStore, dataset: Dataset, spec: VolumeSpec): void {
  const { name } = dataset;
  const refuse = (why: string) =>
    new CallError('ALREADY_EXISTS', `${name} on ${store.zfs.host} exists already, ${why}`);
  if (!isManaged(dataset))
    throw refuse('but is not managed: adopt it with `switchboard ctl adopt`, or choose another name');
  if (dataset.type !== store.kind) throw refuse(`as a ${dataset.type}`);
  const size = sizeOf(store, dataset);
  if (size !== undefined && !fitsRange(size, spec.capacity)) throw refuse(`with a size of ${formatSize(size)}`);
  const source = sourceOf(dataset);
  if (source?.type !== spec.source?.type || source?.id !== spec.source?.id) {
    throw refuse(source ? `made from ${source.type} ${source.id}` : 'but was not made from a source');
  }
  const parameters = parametersOf(dataset);
  if (parameters && !sameParameters(parameters, spec.parameters)) throw refuse('made with other parameters');
}

function only(datasets: readonly Dataset[], name: string): Dataset {
  const found = datasets.find((dataset) => dataset.name === name);
  if (!found) throw new CallError('INTERNAL', `zfs said nothing of ${name}`);
  return found;
}
