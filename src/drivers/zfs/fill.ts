/** New volumes with content: a clone of a snapshot, or a full copy. */

import type { Step, Steps } from '../../backends/shell/steps.ts';
import { type Dataset, numberOf, valueIn } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { VolumeSpec } from '../../core/volume.ts';
import { parameter } from '../common/parameters.ts';
import { isVolumeId } from '../common/volume-id.ts';
import { copyDataset } from './copy-dataset.ts';
import { type Glance, lookFor } from './share-trouble.ts';
import { readSnapshotId, snapshotDataset } from './snapshot-id.ts';
import { requireShortNames, volumeDataset, type ZfsStore } from './store.ts';
import { forVolume } from './user-properties.ts';
import { isManaged, volumeProperties } from './volume-answer.ts';
import { asOptions, chosenProperties, markingProperties, sizeProperties } from './wanted-properties.ts';

export interface ZfsSource {
  /** The volume itself, when it is there already. */
  readonly target?: Dataset | undefined;
  /** The snapshot to clone or send. */
  readonly snapshot: string;
  /** It has to be made, and belongs to this copy alone. */
  readonly isTemporary: boolean;
  /** Bytes that its content needs at least. */
  readonly sizeBytes: number;
  readonly isCopied: boolean;
  readonly glance?: Glance | undefined;
}

/** Looks at the source and the target in one round trip. Throws NOT_FOUND when the source is not there. */
export async function openSource(store: ZfsStore, call: CallContext, spec: VolumeSpec, id: string): Promise<ZfsSource> {
  const { zfs } = store;
  const source = place(store, spec, id);
  const target = await zfs.reading(call, { name: volumeDataset(store, id), properties: volumeProperties(store) });
  const origin = await zfs.reading(call, {
    name: source.dataset,
    properties: ['volsize', 'defer_destroy', ...volumeProperties(store)],
  });
  if (source.isTemporary) requireShortNames(source.snapshot);
  const look = lookFor(store, id, spec.parameters);
  const [there, found, looked] = await zfs.run(call, 'zfs get', [
    { argv: target.argv, goOn: 'any' },
    { argv: origin.argv, goOn: 'any' },
    ...(look ? [look.step] : []),
  ]);
  const present = there.code === 0 ? target.datasets(there)[0] : undefined;
  const common = { snapshot: source.snapshot, isTemporary: source.isTemporary, isCopied: isCopied(store, spec) };
  const glance = look && looked && { look, result: looked };
  if (present) return { ...common, target: present, sizeBytes: 0, glance };
  let dataset: Dataset | undefined;
  try {
    dataset = found && origin.datasets(found)[0];
  } catch (error) {
    if (!(error instanceof StepFailed) || error.kind !== 'missing') throw error;
  }
  if (!dataset || !isManaged(dataset) || valueIn(dataset, 'defer_destroy') === 'on') {
    throw new CallError('NOT_FOUND', `there is no ${spec.source?.type} ${JSON.stringify(spec.source?.id)}`);
  }
  return { ...common, sizeBytes: store.kind === 'volume' ? (numberOf(dataset, 'volsize') ?? 0) : 0 };
}

/** Makes the volume and reads it. */
export async function fillFromSource(
  store: ZfsStore,
  call: CallContext,
  spec: VolumeSpec,
  id: string,
  source: ZfsSource,
  sizeBytes: number,
): Promise<Dataset> {
  const { zfs } = store;
  const name = volumeDataset(store, id);
  const { snapshot, isTemporary, isCopied: copied } = source;
  const marks = { ...sizeProperties(store, sizeBytes), ...markingProperties(store, spec, sizeBytes) };
  const chosen = chosenProperties(store, spec, copied ? 'copy' : 'clone');
  const reading = await zfs.reading(call, { name, properties: volumeProperties(store) });

  if (copied) {
    await copyDataset(store, call, { snapshot, isTemporary, name, properties: { ...chosen, ...marks } });
    return one(await zfs.read(call, { name, properties: volumeProperties(store) }));
  }
  const clone: Step = { argv: zfs.zfs('clone', ...asOptions({ ...chosen, ...marks }), snapshot, name) };
  const read: Step = { argv: reading.argv };
  const steps = [...(isTemporary ? [{ argv: [snapshot, ...zfs.zfs()], body: takeAnew }] : []), clone, read];
  const { results, otherwise } = await zfs.attempt(call, 'zfs clone', steps as unknown as Steps, [read]);
  // Another controller may have been faster.
  const state = otherwise ? otherwise[0] : (results.at(-1) ?? results[0]);
  if (state.code === 0) return one(reading.datasets(state));
  throw new StepFailed(zfs.host, `zfs clone ${snapshot} ${name}`, results.find(({ code }) => code !== 0) ?? state);
}

/**
 * Arguments: a snapshot that is for this volume alone, the command of ZFS. One that is there already is of an earlier request, perhaps of long ago. It is
 * not destroyed when it has clones, and then is not used either.
 */
const takeAnew = `snapshot=$1; shift
said=$("$@" snapshot "$snapshot" 2>&1) && return
"$@" get -H type "$snapshot" >/dev/null 2>&1 || { printf '%s\\n' "$said" >&2; return 1; }
"$@" destroy "$snapshot" && "$@" snapshot "$snapshot"`;

function one(datasets: readonly Dataset[]): Dataset {
  const [first] = datasets;
  if (!first) throw new CallError('INTERNAL', 'zfs said nothing of the new volume');
  return first;
}

function place(store: ZfsStore, { source }: VolumeSpec, id: string) {
  const notFound = () => new CallError('NOT_FOUND', `there is no ${source?.type} ${JSON.stringify(source?.id)}`);
  if (source?.type === 'volume') {
    if (!isVolumeId(source.id)) throw notFound();
    const dataset = volumeDataset(store, source.id);
    return { dataset, snapshot: `${dataset}@${forVolume(id)}`, isTemporary: true };
  }
  const snapshotId = source && readSnapshotId(source.id);
  if (!snapshotId) throw notFound();
  const dataset = snapshotDataset(store, snapshotId);
  return snapshotId.detached
    ? { dataset, snapshot: `${dataset}@${forVolume(id)}`, isTemporary: true }
    : { dataset, snapshot: dataset, isTemporary: false };
}

/** A class says with `detachedVolumesFromSnapshots` and `detachedVolumesFromVolumes` that it wants volumes that depend on nothing. */
function isCopied({ driver, instanceId }: ZfsStore, { source, parameters }: VolumeSpec): boolean {
  const key = source?.type === 'snapshot' ? 'detachedVolumesFromSnapshots' : 'detachedVolumesFromVolumes';
  return parameter(parameters, key, { driver, instanceId })?.toLowerCase() === 'true';
}
