import type { Step, StepResult } from '../../backends/shell/steps.ts';
import { numberOf, valueIn } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { CapacityQuery } from '../../core/driver.ts';
import type { Capacity } from '../../core/volume.ts';
import { refusal } from '../common/capability-check.ts';
import { isHere } from '../common/reach.ts';
import type { ZfsStore } from './store.ts';

/** Bytes that new volumes could have. Nothing is made: while the parent dataset is not there, its pool tells. */
export async function zfsCapacity(store: ZfsStore, call: CallContext, query: CapacityQuery): Promise<Capacity> {
  const { topology } = store;
  if (refusal(query.capabilities, store.rules) !== undefined) return { availableBytes: 0 };
  if (topology && query.topology && !isHere(query.topology, topology)) return { availableBytes: 0 };
  const place = places.get(store);
  const known = place?.identity === undefined ? undefined : await readMounted(store, call, place.path, place.identity);
  return { availableBytes: known ?? (await readProperty(store, call)) };
}

/** Where the parent dataset is mounted, and what its file system is known by once that is sure; `nothing` when it cannot be told. */
const places = new WeakMap<ZfsStore, { readonly path: string; readonly identity?: string | 'nothing' }>();

/**
 * `statvfs` counts as the property `available` does, quotas and reservations included (zfs_vfsops.c and dsl_dataset.c of OpenZFS: both are
 * dsl_dataset_space), in whole blocks, and `stat` is started in a fraction of the time of `zfs`. Its file system identifies the dataset: a
 * dataset that is not mounted any more, or another one at its place, shows by it.
 */
const statOf = (path: string): Step => ({ argv: ['stat', '-f', '-c', '%t:%i %a %S', path], goOn: 'any' });

/** ZFS_SUPER_MAGIC, which is what `%t` prints of ZFS. */
const typeOfZfs = '2fc12fc1:';

function readStat({ code, stdout }: StepResult): { readonly identity: string; readonly bytes: number } | undefined {
  const [identity = '', blocks, size] = stdout.trim().split(' ');
  const bytes = Number(blocks) * Number(size);
  return code === 0 && identity.startsWith(typeOfZfs) && Number.isSafeInteger(bytes) ? { identity, bytes } : undefined;
}

async function readMounted(store: ZfsStore, call: CallContext, path: string, identity: string) {
  if (identity === 'nothing') return undefined;
  const [result] = await store.zfs.run(call, 'stat', [statOf(path)]);
  const found = readStat(result);
  if (found?.identity === identity) return found.bytes;
  places.delete(store);
  return undefined;
}

/** As ZFS itself tells it. On the way, it finds out how it can be told faster: the path with the first call, the rest with the second. */
async function readProperty(store: ZfsStore, call: CallContext): Promise<number> {
  const { zfs, options } = store;
  const name = options.datasetParentName;
  const place = places.get(store);
  const reading = await zfs.reading(call, { name, properties: ['available', 'mountpoint', 'mounted'] });
  const look: readonly Step[] =
    place && place.identity === undefined
      ? [{ argv: ['df', '--output=source', '--', place.path], goOn: 'any' }, statOf(place.path)]
      : [];
  const [result, source, stat] = await zfs.run(call, 'zfs get', [{ argv: reading.argv }, ...look]);
  if (isMissing(result) && name.includes('/')) return await readPool(store, call);
  if (result.code !== 0) throw new StepFailed(zfs.host, `zfs get available ${name}`, result);
  const [dataset] = reading.datasets(result);
  const path = dataset && valueIn(dataset, 'mounted') === 'yes' ? valueIn(dataset, 'mountpoint') : undefined;
  if (place && source && stat) {
    const isIt = path === place.path && source.code === 0 && source.stdout.trimEnd().split('\n').at(-1) === name;
    places.set(store, { ...place, identity: (isIt && readStat(stat)?.identity) || 'nothing' });
  } else if (!place && path?.startsWith('/')) {
    places.set(store, { path });
  }
  return (dataset && numberOf(dataset, 'available')) ?? 0;
}

async function readPool({ zfs, options }: ZfsStore, call: CallContext): Promise<number> {
  const [pool = ''] = options.datasetParentName.split('/');
  const [dataset] = await zfs.read(call, { name: pool, properties: ['available'] });
  return (dataset && numberOf(dataset, 'available')) ?? 0;
}
