/**
 * CreateVolume. What makes the dataset and what reads it go in one round trip, what is left to be done in another: sharing it, permissions, and the
 * mark that it is complete, which is set last. A repeated request finds at which of these the first one ended.
 */

import type { Step, StepResult, Steps } from '../../backends/shell/steps.ts';
import { type Dataset, datasetOf, valueIn } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { ReadingStep } from '../../backends/zfs/zfs-host.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { formatSize, roundUp } from '../../core/sizes.ts';
import type { Volume, VolumeSpec } from '../../core/volume.ts';
import { requireCapabilities } from '../common/capability-check.ts';
import { chooseSize, fitsRange, requireRange } from '../common/capacity.ts';
import { sameParameters } from '../common/parameters.ts';
import { requireHere } from '../common/reach.ts';
import { volumeId } from '../common/volume-id.ts';
import { birthOf, isUnfinished, learnMountPoint, mountPointFor, unfinishedLook } from './birth.ts';
import { checkFormatOptions } from './check-format-options.ts';
import { fillFromSource, openSource, type ZfsSource } from './fill.ts';
import { finishVolume, shareSteps } from './finish-volume.ts';
import type { ShareLook } from './share.ts';
import { type Glance, lookFor, shareTrouble } from './share-trouble.ts';
import { requireShortNames, volumeDataset, type ZfsStore } from './store.ts';
import {
  isComplete,
  isManaged,
  parametersOf,
  shareContextOf,
  sizeOf,
  sourceOf,
  volumeOf,
  volumeProperties,
} from './volume-answer.ts';
import {
  asOptions,
  chosenProperties,
  markingProperties,
  type Properties,
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
  checkFormatOptions(store, spec);
  store.share.check?.({ volumeId: id, dataset: volumeDataset(store, id), parameters: spec.parameters });

  requireShortNames(volumeDataset(store, id));
  const { dataset, state, glance } = spec.source
    ? await filled(store, call, spec, id)
    : await made(store, call, spec, id);
  requireSame(store, dataset, spec);
  learnMountPoint(store, dataset);
  const isMounted = valueIn(dataset, 'mounted') !== 'no';
  if (state === 'finished') return volumeOf(store, dataset);
  const isFinished = state === 'found' && isComplete(dataset);
  const isShown = async () =>
    isTold(store, dataset) &&
    store.share.conditionOf?.(dataset)?.abnormal !== true &&
    (await shareTrouble(store, call, dataset, glance)) === undefined;
  if (isFinished && isMounted && (await isShown())) return volumeOf(store, dataset);
  const { parameters } = spec;
  const isShared = state === 'new' && isMounted;
  // What is in a volume that is whole may have been given to somebody else meanwhile.
  const permissions = !isFinished ? 'yes' : isMounted ? 'no' : 'untouched';
  return await finishVolume(store, call, dataset, { permissions, parameters, isShared });
}

/** Whether nodes are told of the place where it is: it may have been another one when the volume was made. */
function isTold({ share }: ZfsStore, dataset: Dataset): boolean {
  if (!valueIn(dataset, 'mountpoint')?.startsWith('/')) return true;
  const shared = share.byProperties?.(dataset);
  return shared === undefined || shared.context.share === shareContextOf(dataset)?.share;
}

interface Found {
  readonly dataset: Dataset;
  /**
   * `finished`: this very call made it, and nothing is left to be done. `new`: this call made it by commands that ended well. `found`: it was there.
   * `unfinished`: it was there, and its permissions are not what they should be.
   */
  readonly state: 'finished' | 'new' | 'found' | 'unfinished';
  readonly glance?: Glance | undefined;
}

/** A new, empty volume, or the one that is there. */
async function made(store: ZfsStore, call: CallContext, spec: VolumeSpec, id: string): Promise<Found> {
  const { zfs, kind } = store;
  const name = volumeDataset(store, id);
  const sizeBytes = roundedSize(store, spec, 0);
  const size =
    kind === 'volume' ? ['-b', String(volumeBlockBytes(store, spec.parameters)), '-V', String(sizeBytes)] : [];
  const properties = {
    ...chosenProperties(store, spec, 'new'),
    ...sizeProperties(store, sizeBytes),
    ...markingProperties(store, spec, sizeBytes),
  };
  const create = (more: Properties = {}): Step => {
    return { argv: zfs.zfs('create', ...size, ...asOptions({ ...properties, ...more }), name), goOn: 'any' };
  };
  const birth = birthOf(store, name, properties);
  const look = lookFor(store, id, spec.parameters);
  if (!birth) return await madeUnfinished(store, call, name, create(), look);

  const path = mountPointFor(store, { name });
  const reading = await zfs.reading(call, { name, properties: volumeProperties(store) });
  // Sharing mounts what is not, and only then it is seen.
  const share = shareSteps(store, name);
  const left = path === undefined ? [] : unfinishedLook(store, path);
  const { results, otherwise } = await zfs.attempt(
    call,
    'zfs create',
    [...birth.before, { ...create(birth.properties), goOn: [0] }, ...birth.after] as unknown as Steps,
    [...share, ...left, { argv: reading.argv }] as unknown as Steps,
  );
  if (!otherwise) {
    const all = { ...properties, ...birth.properties, ...(kind === 'volume' && { volsize: String(sizeBytes) }) };
    return { dataset: datasetOf(name, kind, all), state: 'finished' };
  }
  const created = results[birth.before.length];
  const found = otherwise.at(-1) ?? otherwise[0];
  if ((!created || isMissing(created)) && isMissing(found)) {
    return await madeUnfinished(store, call, name, create(), look);
  }
  const dataset = readMade(store, reading, name, created ?? found, found);
  if (created?.code === 0) return { dataset, state: 'new' };
  const isLeft =
    path !== undefined && isUnfinished(dataset, path, left.length > 0 ? otherwise[share.length] : undefined);
  return { dataset, state: isLeft ? 'unfinished' : 'found' };
}

/** What has to be seen before it can be shared. */
async function madeUnfinished(
  store: ZfsStore,
  call: CallContext,
  name: string,
  create: Step,
  look: ShareLook | undefined,
): Promise<Found> {
  const { zfs } = store;
  const reading = await zfs.reading(call, { name, properties: volumeProperties(store) });
  const read: Step = { argv: reading.argv };
  const attempt = await zfs.attempt(
    call,
    'zfs create',
    [{ ...create, goOn: [0] }, read],
    look ? [{ ...read, goOn: 'any' }, look.step] : [read],
  );
  let [created] = attempt.results;
  let [found, looked]: readonly (StepResult | undefined)[] = attempt.otherwise ?? attempt.results.slice(1);
  if (isMissing(created) && found?.code !== 0) {
    // The first volume of all: what is above is not there yet. Another call may make it at this moment, and must not mount it over this volume.
    const above = store.options.datasetParentName;
    const parent: Step = { argv: zfs.zfs('create', '-p', above), goOn: 'any' };
    const mount: Step = { argv: zfs.zfs('mount', above), goOn: 'any' };
    const results = await zfs.run(call, 'zfs create', [parent, mount, create, read]);
    [, , created = results[0], found] = results;
    if (found?.code !== 0 && isMissing(created)) throw new StepFailed(zfs.host, `zfs create -p ${above}`, results[0]);
  }
  const dataset = readMade(store, reading, name, created, found);
  if (created.code === 0) return { dataset, state: 'new' };
  const path = valueIn(dataset, 'mountpoint') ?? '';
  const [left] = path.startsWith('/') && isComplete(dataset) ? unfinishedLook(store, path) : [];
  const [seen] = left ? await zfs.run(call, 'find', [left]) : [];
  const glance = look && looked && { look, result: looked };
  return { dataset, state: isUnfinished(dataset, path, seen) ? 'unfinished' : 'found', glance };
}

/** Whether it was made now or before is told by what is there, not by what was said. */
function readMade(
  { zfs }: ZfsStore,
  reading: ReadingStep,
  name: string,
  created: StepResult,
  found: StepResult | undefined,
): Dataset {
  if (found?.code === 0) return only(reading.datasets(found), name);
  throw new StepFailed(zfs.host, `zfs create ${name}`, created.code === 0 ? (found ?? created) : created);
}

async function filled(store: ZfsStore, call: CallContext, spec: VolumeSpec, id: string): Promise<Found> {
  const source = await openSource(store, call, spec, id);
  if (source.target) {
    if (source.isCopied && source.isTemporary && !isComplete(source.target)) {
      // Left when an earlier call was interrupted right after the copy was whole.
      const { zfs } = store;
      await zfs.run(call, 'zfs destroy', [{ argv: zfs.zfs('destroy', '-d', source.snapshot), goOn: 'any' }]);
    }
    return { dataset: source.target, state: 'found', glance: source.glance };
  }
  const sizeBytes = roundedSize(store, spec, source.sizeBytes);
  const dataset = await fillFromSource(store, call, spec, id, source as ZfsSource, sizeBytes);
  return { dataset, state: 'new' };
}

/** Bytes: what is asked for, at least what the content needs; for a block device a multiple of its blocks. Throws OUT_OF_RANGE. */
function roundedSize(store: ZfsStore, spec: VolumeSpec, least: number): number {
  const bytes = chooseSize(spec.capacity, least);
  if (store.kind === 'filesystem') return bytes;
  const block = volumeBlockBytes(store, spec.parameters);
  const rounded = roundUp(bytes, block);
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
