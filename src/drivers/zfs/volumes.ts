/** The volume operations of a ZFS driver. */

import type { Steps } from '../../backends/shell/steps.ts';
import type { Dataset } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { Reading } from '../../backends/zfs/zfs-host.ts';
import type { CallContext } from '../../core/call.ts';
import type { Validation, ValidationQuery, VolumeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Page, PageRequest, VolumeStatus } from '../../core/volume.ts';
import { refusal } from '../common/capability-check.ts';
import { sameParameters } from '../common/parameters.ts';
import { isVolumeId, volumeId } from '../common/volume-id.ts';
import { createVolume } from './create-volume.ts';
import { deleteVolume } from './delete-volume.ts';
import { createNamePages } from './name-pages.ts';
import { requirePool } from './require-pool.ts';
import type { ShareLook } from './share.ts';
import { lookFor, shareTrouble } from './share-trouble.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import type { Trash } from './trash.ts';
import { idOf, isManaged, parametersOf, shareContextOf, statusOf, volumeProperties } from './volume-answer.ts';

export function zfsVolumes(store: ZfsStore, trash: Trash): VolumeOperations {
  return {
    sources: new Set(['snapshot', 'volume']),
    reportsCondition: true,
    idFor: (spec) => volumeId(spec, store.naming),
    create(call, spec) {
      trash.lookOnce();
      return createVolume(store, call, spec);
    },
    async delete(call, id) {
      if (store.retain || !isVolumeId(id)) return;
      trash.lookOnce();
      await deleteVolume(store, trash, call, id);
    },
    validate: (call, query) => validateVolume(store, call, query),
    async get(call, id) {
      if (!isVolumeId(id)) throw notFound(id);
      const look = lookFor(store, id);
      const found = await readVolumes(store, call, { name: volumeDataset(store, id) }, look);
      const volume = found?.volumes[0];
      if (!volume) throw notFound(id);
      const trouble = await shareTrouble(store, call, volume, found.glance);
      return statusOf(store, volume, { poolHealth: found.poolHealth, trouble });
    },
    list: volumeList(store),
  };
}

/** A volume as it is. Throws NOT_FOUND. */
export async function readVolume(store: ZfsStore, call: CallContext, id: string): Promise<Dataset> {
  const found = isVolumeId(id)
    ? await store.zfs.readOne(call, volumeDataset(store, id), volumeProperties(store))
    : undefined;
  if (!found || !isManaged(found)) throw notFound(id);
  return found;
}

/** Volumes and the health of their pool, in one round trip. Undefined when one that is named is not there. */
async function readVolumes(
  store: ZfsStore,
  call: CallContext,
  scope: Pick<Reading, 'name' | 'others' | 'depth'>,
  look?: ShareLook,
) {
  const { zfs, kind } = store;
  const types = scope.depth ? [kind] : undefined;
  const reading = await zfs.reading(call, { ...scope, properties: volumeProperties(store), types });
  const pool = scope.name.split('/')[0] ?? scope.name;
  const health = { argv: zfs.zpool('list', '-H', '-o', 'health', pool), goOn: 'any' as const };
  const steps: Steps = [{ argv: reading.argv, goOn: 'any' }, health, ...(look ? [look.step] : [])];
  const [result, pools, looked] = await zfs.run(call, 'zfs get', steps);
  if (scope.others === undefined && isMissing(result)) {
    if (scope.depth) await requirePool(store, call);
    return undefined;
  }
  const volumes = reading
    .datasets(result)
    .filter((one) => isManaged(one) && isVolumeId(idOf(one)) && one.type === kind);
  const poolHealth = pools?.code === 0 ? pools.stdout.trim() : undefined;
  return { volumes, poolHealth, glance: look && looked && { look, result: looked } };
}

function volumeList(store: ZfsStore) {
  const pages = createNamePages<VolumeStatus>({
    ids: (call) => listNames(store, call),
    async read(call, ids) {
      const [name = '', ...others] = ids.map((id) => volumeDataset(store, id));
      return byId(store, await readVolumes(store, call, { name, others }));
    },
  });
  return async (call: CallContext, request: PageRequest): Promise<Page<VolumeStatus>> => {
    if (request.limit || request.token) return await pages(call, request);
    const all = byId(store, await readVolumes(store, call, { name: store.options.datasetParentName, depth: 1 }));
    return { entries: [...all].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, status]) => status) };
  };
}

/** What is not shared yet has no context that could be given out. */
function byId(store: ZfsStore, found: Awaited<ReturnType<typeof readVolumes>>): ReadonlyMap<string, VolumeStatus> {
  const { volumes = [], poolHealth } = found ?? {};
  return new Map(volumes.filter(shareContextOf).map((one) => [idOf(one), statusOf(store, one, { poolHealth })]));
}

/** Ids of everything that might be a volume. */
async function listNames(store: ZfsStore, call: CallContext): Promise<readonly string[]> {
  const { zfs, kind, options } = store;
  const { datasetParentName: parent } = options;
  const argv = zfs.zfs('list', '-H', '-o', 'name', '-s', 'name', '-d', '1', '-t', kind, parent);
  const [result] = await zfs.run(call, 'zfs list', [{ argv }]);
  if (isMissing(result)) {
    await requirePool(store, call);
    return [];
  }
  if (result.code !== 0) throw new StepFailed(zfs.host, `zfs list ${parent}`, result);
  const names = result.stdout.split('\n').filter((name) => name.startsWith(`${parent}/`));
  return names.map((name) => idOf({ name })).filter(isVolumeId);
}

async function validateVolume(store: ZfsStore, call: CallContext, query: ValidationQuery): Promise<Validation> {
  const { volumeId: id, capabilities, context, parameters } = query;
  if (!isVolumeId(id)) throw notFound(id);
  const look = lookFor(store, id);
  const found = await readVolumes(store, call, { name: volumeDataset(store, id) }, look);
  const volume = found?.volumes[0];
  if (!volume) throw notFound(id);
  const why = refusal(capabilities, store.rules);
  if (why) return { confirmed: false, message: why };
  const kept = shareContextOf(volume) ?? {};
  const strange = Object.keys(kept).find((key) => context[key] !== undefined && context[key] !== kept[key]);
  if (strange !== undefined) {
    return { confirmed: false, message: `its context has ${strange}=${kept[strange]}, not ${context[strange]}` };
  }
  const recorded = parametersOf(volume);
  const differs = recorded && Object.keys(parameters).length > 0 && !sameParameters(recorded, parameters);
  if (differs) return { confirmed: false, message: 'it was made with other parameters' };
  const trouble = await shareTrouble(store, call, volume, found.glance);
  return trouble === undefined
    ? { confirmed: true }
    : { confirmed: false, message: `${trouble}; creating it again mends that` };
}

function notFound(id: string): CallError {
  return new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(id)}`);
}
