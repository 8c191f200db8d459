/** The volume operations of a ZFS driver. */

import type { Step } from '../../backends/shell/steps.ts';
import type { Dataset } from '../../backends/zfs/dataset.ts';
import { failureKind, StepFailed } from '../../backends/zfs/failure.ts';
import type { Reading } from '../../backends/zfs/zfs-host.ts';
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
      const found = isVolumeId(id) ? await readVolumes(store, call, { name: volumeDataset(store, id) }) : undefined;
      const volume = found?.volumes[0];
      if (!volume) throw notFound(id);
      return statusOf(store, volume, found?.health);
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

/** Volumes and the health of their pool, in one round trip. Undefined when one that is named is not there. */
async function readVolumes(store: ZfsStore, call: CallContext, scope: Pick<Reading, 'name' | 'others' | 'depth'>) {
  const { zfs, kind } = store;
  const types = scope.depth ? [kind] : undefined;
  const reading = await zfs.reading(call, { ...scope, properties: volumeProperties(store), types });
  const pool = scope.name.split('/')[0] ?? scope.name;
  const steps: [Step, ...Step[]] = [{ argv: reading.argv }, { argv: zfs.zpool('list', '-H', '-o', 'health', pool) }];
  const [result, health] = await zfs.run(call, 'zfs get', steps);
  if (result.code !== 0 && failureKind(result) === 'missing') return undefined;
  const volumes = reading
    .datasets(result)
    .filter((one) => isManaged(one) && isVolumeId(idOf(one)) && one.type === kind);
  return { volumes, health: health?.code === 0 ? health.stdout.trim() : undefined };
}

/** Names are read in no time, properties are not: of a page of a long list, only those are read that are on it. */
async function listVolumes(store: ZfsStore, call: CallContext, request: PageRequest): Promise<Page<VolumeStatus>> {
  const { datasetParentName: parent } = store.options;
  if (!request.limit) {
    const all = await readVolumes(store, call, { name: parent, depth: 1 });
    return { entries: sorted(store, all, request.token ? pageOfIds(idsOf(all), request).ids : undefined) };
  }
  const names = await listNames(store, call);
  const entries: VolumeStatus[] = [];
  let { limit, token } = request;
  for (;;) {
    const { ids, nextToken } = pageOfIds(names, { limit, token });
    const [first, ...others] = ids.map((id) => volumeDataset(store, id));
    if (first === undefined) return { entries };
    // Undefined: one of them was deleted meanwhile, and all have to be looked at.
    const found =
      (await readVolumes(store, call, { name: first, others })) ??
      (await readVolumes(store, call, { name: parent, depth: 1 }));
    entries.push(...sorted(store, found, ids));
    if (nextToken === undefined) return { entries };
    if (entries.length >= request.limit) return { entries, nextToken };
    limit = request.limit - entries.length;
    token = nextToken;
  }
}

type Found = Awaited<ReturnType<typeof readVolumes>>;

const idsOf = (found: Found) => (found?.volumes ?? []).map(idOf);

/** Those with these ids, or all. What is not shared yet has no context that could be given out. */
function sorted(store: ZfsStore, found: Found, ids?: readonly string[]): readonly VolumeStatus[] {
  const byId = new Map((found?.volumes ?? []).filter(shareContextOf).map((volume) => [idOf(volume), volume]));
  return (ids ?? [...byId.keys()].sort()).flatMap((id) => {
    const volume = byId.get(id);
    return volume ? [statusOf(store, volume, found?.health)] : [];
  });
}

/** Ids of everything that might be a volume. */
async function listNames({ zfs, kind, options }: ZfsStore, call: CallContext): Promise<readonly string[]> {
  const { datasetParentName: parent } = options;
  const argv = zfs.zfs('list', '-H', '-o', 'name', '-s', 'name', '-d', '1', '-t', kind, parent);
  const [result] = await zfs.run(call, 'zfs list', [{ argv }]);
  if (result.code !== 0 && failureKind(result) === 'missing') return [];
  if (result.code !== 0) throw new StepFailed(zfs.host, `zfs list ${parent}`, result);
  const names = result.stdout.split('\n').filter((name) => name.startsWith(`${parent}/`));
  return names.map((name) => idOf({ name })).filter(isVolumeId);
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
