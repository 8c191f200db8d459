/** DeleteVolume: looks first, and changes nothing when something is in the way. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Step, StepResult, Steps } from '../../backends/shell/steps.ts';
import { type Dataset, valueIn } from '../../backends/zfs/dataset.ts';
import { failureKind, isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import { type CallContext, reasonOf } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { bringBack } from './bring-back.ts';
import { type Dependants, dependantProperties, dependantsOf } from './dependants.ts';
import { removeVolumeLeftovers } from './leftovers.ts';
import { inLots } from './lots.ts';
import { canBePromoted, promoteClone } from './promote.ts';
import { volumeDataset, type ZfsStore } from './store.ts';
import { canBeHeld, type Trash } from './trash.ts';
import { unmountOwn } from './unmount-own.ts';
import { unsharingLock } from './unsharing.ts';
import { isTemporary, userProperties } from './user-properties.ts';
import { isComplete, isManaged, volumeProperties } from './volume-answer.ts';

/** Success when it is gone. FAILED_PRECONDITION while snapshots or clones of it live, or it is in use. */
export async function deleteVolume(store: ZfsStore, trash: Trash, call: CallContext, volumeId: string): Promise<void> {
  const { zfs } = store;
  const name = volumeDataset(store, volumeId);
  const properties = [...volumeProperties(store), ...dependantProperties, 'origin'];
  const reading = await zfs.reading(call, { name, properties, depth: 'all' });
  const look: Steps = [{ argv: reading.argv }];
  const plain = store.share.withdraw
    ? undefined
    : await zfs.attempt(call, 'zfs destroy', plainSteps(store, name), look);
  if (plain && !plain.otherwise) return;
  const [result] = plain?.otherwise ?? (await zfs.run(call, 'zfs get', look));
  const datasets = isMissing(result) ? [] : reading.datasets(result);
  const volume = datasets.find((dataset) => dataset.name === name);
  if (!volume) {
    await store.share.withdraw?.(call, { volumeId, dataset: name }, undefined);
    await removeVolumeLeftovers(store, call, volumeId);
    return;
  }
  if (!isManaged(volume)) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${name} on ${zfs.host} was not made as a volume, and is not deleted as one`,
    );
  }
  const dependants = dependantsOf(name, datasets);
  requireFree(store, name, dependants);

  const { left, moved } = await promoteClone(store, call, dependants);
  const snapshots = left.map((one) => one.name.slice(name.length + 1));
  const origin = valueIn(volume, 'origin');
  // The snapshot that was made for this clone alone, and those that only this volume was in need of: gone with the last of their clones.
  const passing = [...moved, ...(origin && isTemporary(origin.slice(origin.indexOf('@') + 1)) ? [origin] : [])];
  const steps: readonly Step[] = [
    // By name: one that was made meanwhile is not destroyed without a look.
    ...inLots(snapshots).map((lot) => ({ argv: zfs.zfs('destroy', `${name}@${lot.join(',')}`) })),
    ...unmountSteps(store, volume),
    { argv: zfs.zfs('destroy', '-f', name) },
    ...passing.map((snapshot) => ({ argv: zfs.zfs('destroy', '-d', snapshot), goOn: 'any' as const })),
  ];
  try {
    await store.share.withdraw?.(call, { volumeId, dataset: name }, volume);
    await destroyed(store, call, name, steps);
  } catch (error) {
    const isHeld = canBeHeld(store) && error instanceof StepFailed && error.kind === 'busy';
    if (!isHeld || !(await trash.throwAway(call, volume))) {
      await bringBack(store, volumeId);
      throw error;
    }
  }
  if (!isComplete(volume)) await removeVolumeLeftovers(store, call, volumeId);
}

/** Arguments: what has to be seen, and the command that shows it. */
const sees = 'wanted=$1; shift; seen=$("$@") && [ "$seen" = "$wanted" ]';

/**
 * What most volumes need: a look that shows that it is complete, that it came from nowhere and that there is nothing below it, and its end. ZFS itself
 * refuses to destroy what has got snapshots in between, and then has changed nothing.
 */
function plainSteps(store: ZfsStore, name: string): Steps {
  const { zfs } = store;
  const { managed, success } = userProperties;
  const wanted = [
    [name, managed, 'true', 'local'],
    [name, success, 'true', 'local'],
    [name, 'origin', '-', '-'],
  ];
  const types = 'filesystem,volume,snapshot';
  const argv = zfs.zfs('get', '-H', '-p', '-r', '-t', types, '-o', 'name,property,value,source');
  const properties = wanted.map(([, property]) => property).join(',');
  return [
    ...unsharingLock(store, name, true),
    { argv: [wanted.map((line) => line.join('\t')).join('\n'), ...argv, properties, name], body: sees },
    { argv: zfs.zfs('destroy', '-f', name) },
  ] as unknown as Steps;
}

/**
 * The NFS server of Linux holds what clients used for seconds after it was unshared, and for one more with each change of its exports. Destroying
 * is such a change, unmounting is not: so it is unmounted first, which may be tried as often as need be.
 */
function unmountSteps(store: ZfsStore, volume: Dataset): readonly Step[] {
  const unmount = canBeHeld(store) ? unmountOwn(store, volume) : [];
  return unmount.length > 0 ? [{ argv: store.zfs.zfs('unshare', volume.name), goOn: 'any' }, ...unmount] : [];
}

/** Throws FAILED_PRECONDITION, naming everything that is in the way. */
function requireFree(store: ZfsStore, name: string, { snapshots, children }: Dependants): void {
  const { zfs, options } = store;
  const clones = snapshots.flatMap((one) => one.clones).filter((clone) => !canBePromoted(store, clone));
  const held = snapshots.filter((one) => one.isHeld).map((one) => one.name);
  const managed = snapshots.filter((one) => one.kind === 'managed').map((one) => one.name);
  const foreign = snapshots.filter((one) => one.kind === 'foreign').map((one) => one.name);
  const inTheWay = [
    ...describe('clones of it', clones),
    ...describe('snapshots of it', managed),
    ...describe('snapshots that are held', held),
    ...describe('snapshots that were not made through CSI', options.foreignSnapshots === 'refuse' ? foreign : []),
    ...describe('datasets below it', children),
  ];
  if (inTheWay.length === 0) return;
  throw new CallError('FAILED_PRECONDITION', `${name} on ${zfs.host} stays, for there are ${inTheWay.join(' and ')}`);
}

function describe(what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const shown = names.slice(0, 3).join(', ');
  return [`${what} (${shown}${names.length > 3 ? ` and ${names.length - 3} more` : ''})`];
}

/** Milliseconds between attempts while something that has just ended lets go. */
const busyPauses = [200, 500, 1000, 2000, 4000];

async function destroyed(store: ZfsStore, call: CallContext, name: string, steps: readonly Step[]): Promise<void> {
  const { zfs } = store;
  let left = steps;
  for (const pause of [...busyPauses, undefined]) {
    const lock = unsharingLock(store, name, false);
    const all = await zfs.run(call, 'zfs destroy', [...lock, ...left] as unknown as Steps);
    const results = all.slice(lock.length);
    const last: StepResult = results.at(-1) ?? all[0];
    const kind = last.code === 0 ? undefined : failureKind(last);
    const isLast = results.length === left.length;
    if (isLast && (kind === undefined || kind === 'missing' || left.at(-1)?.goOn === 'any')) return;
    if (kind !== 'busy' && kind !== 'missing') throw new StepFailed(zfs.host, `zfs destroy ${name}`, last);
    if (kind === 'busy' && pause === undefined) throw new StepFailed(zfs.host, `zfs destroy ${name}`, last);
    left = left.slice(results.length - (kind === 'missing' ? 0 : 1));
    if (kind === 'busy') await call.waitingFor(`users of ${name} to let go`, () => sleep(pause ?? 0, call.signal));
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {
    throw reasonOf(signal);
  });
}
