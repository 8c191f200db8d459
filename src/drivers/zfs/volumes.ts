/** The volume operations of a ZFS driver. */
import type { Dataset } from '../../backends/zfs/dataset.ts';
import { failureKind } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { Validation, ValidationQuery, VolumeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Page, PageRequest, VolumeStatus } from '../../core/volume.ts';
import { refusal } from '../common/capability-check.ts';
import { pageOfIds } from '../common/paging.ts';
import { sameParameters } from '../common/parameters.ts';
import { isVolumeId, volumeId } from '../common/volume-id.ts';
import { createVolume } from './create-volume.ts';
import { deleteVolume } from './delete-volume.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { idOf, isManaged, parametersOf, shareContextOf, statusOf, volumeProperties } from './volume-answer.ts';

export function zfsVolumes(store: ZfsStore): VolumeOperations {
  return {
    sources: new Set(['snapshot', 'volume']),
    reportsCondition: true,
    idFor: (spec) => volumeId(spec, store.naming),
    create: (call, spec) => createVolume(store, call, spec),
    async delete(call, id) {
      if (store.retain || !isVolumeId(id)) return;
      await deleteVolume(store, call, id);
    },
    validate: (call, query) => validateVolume(store, call, query),
    async get(call, id) {
      const { volumes, health } = isVolumeId(id) ? await readVolumes(store, call, volumeDataset(store, id)) : none;
      const [volume] = volumes;
      if (!volume) throw notFound(id);
      return statusOf(store, volume, health);
    },
    list: (call, page) => listVolumes(store, call, page),
  };
}

/** A volume as it is. Throws NOT_FOUND. */
export async function readVolume(store: ZfsStore, call: CallContext, id: string): Promise<Dataset> {
  const found = isVolumeId(id) ? await readIfThere(store, call, volumeDataset(store, id)) : undefined;
  if (!found || !isManaged(found)) throw notFound(id);
  return found;
}

async function readIfThere({ zfs, ...store }: ZfsStore, call: CallContext, name: string): Promise<Dataset | undefined> {
  const reading = await zfs.reading(call, { name, properties: volumeProperties({ zfs, ...store }) });
  const [result] = await zfs.run(call, 'zfs get', [reading]);
  if (result.code !== 0 && failureKind(result) === 'missing') return undefined;
  return reading.datasets(result).find((dataset) => dataset.name === name);
}

const none = { volumes: [], health: undefined } as const;

/** Volumes and the health of their pool, in one round trip: the named one, or with a depth those below. */
async function readVolumes(store: ZfsStore, call: CallContext, name: string, depth?: number) {
  const { zfs, kind } = store;
  const reading = await zfs.reading(call, {
    name,
    properties: volumeProperties(store),
    depth,
    types: depth ? [kind] : undefined,
  });
  const pool = name.split('/')[0] ?? name;
  const [result, health] = await zfs.run(call, 'zfs get', [
    { argv: reading.argv },
    { argv: zfs.zpool('list', '-H', '-o', 'health', pool) },
  ]);
  if (result.code !== 0 && failureKind(result) === 'missing') return none;
  const volumes = reading
    .datasets(result)
    .filter((one) => isManaged(one) && isVolumeId(idOf(one)) && one.type === kind);
  return { volumes, health: health?.code === 0 ? health.stdout.trim() : undefined };
}

async function listVolumes(store: ZfsStore, call: CallContext, request: PageRequest): Promise<Page<VolumeStatus>> {
  const { volumes, health } = await readVolumes(store, call, store.options.datasetParentName, 1);
  const byId = new Map(volumes.map((volume) => [idOf(volume), volume]));
  // What is not shared yet has no context that could be given out.
  const complete = [...byId].filter(([, volume]) => shareContextOf(volume)).map(([id]) => id);
  const { ids, nextToken } = pageOfIds(complete, request);
  const entries = ids.flatMap((id) => {
    const volume = byId.get(id);
    return volume ? [statusOf(store, volume, health)] : [];
  });
  return nextToken === undefined ? { entries } : { entries, nextToken };
}

async function validateVolume(store: ZfsStore, call: CallContext, query: ValidationQuery): Promise<Validation> {
  const { volumeId: id, capabilities, context, parameters } = query;
  const volume = await readVolume(store, call, id);
  const why = refusal(capabilities, store.rules);
  if (why) return { confirmed: false, message: why };
  const kept = shareContextOf(volume) ?? {};
  const strange = Object.keys(kept).find((key) => context[key] !== undefined && context[key] !== kept[key]);
  if (strange !== undefined) {
    return { confirmed: false, message: `its context has ${strange}=${kept[strange]}, not ${context[strange]}` };
  }
  const recorded = parametersOf(volume);
  const differs = recorded && Object.keys(parameters).length > 0 && !sameParameters(recorded, parameters);
  return differs ? { confirmed: false, message: 'it was made with other parameters' } : { confirmed: true };
}

function notFound(id: string): CallError {
  return new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(id)}`);
}
