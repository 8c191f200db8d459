/**
 * Where a copy is while it is not whole: a dataset whose name says what is being copied and, by the guid of the snapshot, which content. So no copy goes
 * on with the data of another source, or of another time.
 */
import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, ownValue, valueIn } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { requireShortNames, type ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';

/** Ids of volumes have no colon, and names of detached snapshots are one level deeper. */
const prefix = 'copy:';

/** What works are called, but for the guid. Beside the finished one. */
export function workOf(name: string): string {
  const slash = name.lastIndexOf('/');
  return `${name.slice(0, slash)}/${prefix}${name.slice(slash + 1)}:`;
}

/** The same for a detached snapshot, whose folder may not be there yet. */
export function detachedWorkOf(parent: string, volumeId: string, name: string): string {
  return `${parent}/${prefix}${volumeId}:${name}:`;
}

/** Whether this is the name of a work; `of`: one that is called so. */
export function isWork(dataset: string, of?: string): boolean {
  const own = dataset.slice(dataset.lastIndexOf('/') + 1);
  return (
    /^copy:.+:\d+$/.test(own) &&
    (of === undefined || (dataset.startsWith(of) && !dataset.slice(of.length).includes(':')))
  );
}

export const workProperties = ['receive_resume_token', 'guid', userProperties.managed] as const;

/** Whether a dataset of such a name was made here: it is half received, or holds the snapshot that its name tells of, and nothing is below it. */
export function isOwnWork(name: string, datasets: readonly Dataset[]): boolean {
  const work = datasets.find((one) => one.name === name);
  if (!work || !isWork(name) || datasets.some((one) => one.name.startsWith(`${name}/`))) return false;
  const guid = name.slice(name.lastIndexOf(':') + 1);
  const isReceived = datasets.some((one) => one.name.startsWith(`${name}@`) && valueIn(one, 'guid') === guid);
  return (
    isReceived ||
    valueIn(work, 'receive_resume_token') !== undefined ||
    ownValue(work, userProperties.managed) === 'true'
  );
}

/** A step that names what is directly below a dataset, and may be half a copy: for {@link removeWorks}. */
export function worksBelow({ zfs, kind }: ZfsStore, parent: string): Step {
  return { argv: zfs.zfs('list', '-H', '-o', 'name', '-s', 'name', '-d', '1', '-t', kind, parent), goOn: 'any' };
}

/** Destroys what interrupted copies left of these names, if anything. `names`: datasets of which some may be theirs. */
export async function removeWorks(
  store: ZfsStore,
  call: CallContext,
  names: readonly string[],
  of: string,
): Promise<void> {
  const { zfs } = store;
  const properties = workProperties;
  for (const name of names.filter((one) => isWork(one, of))) {
    const reading = await zfs.reading(call, {
      name,
      properties,
      depth: 'all',
      types: ['filesystem', 'volume', 'snapshot'],
    });
    const [result] = await zfs.run(call, 'zfs get', [reading]);
    if (isMissing(result) || !isOwnWork(name, reading.datasets(result))) continue;
    await zfs.run(call, 'zfs destroy', [{ argv: zfs.zfs('destroy', '-r', name) }]);
  }
}

export interface Work {
  readonly name: string;
  /** A token to go on with, or that it is whole, or that nothing is there. */
  readonly progress: 'whole' | 'nothing' | { readonly token: string };
}

/**
 * Arguments: the snapshot, what the work is called but for the guid, whether the snapshot is for this copy alone, the command of ZFS. A snapshot that was
 * taken for it, but of which nothing was received yet, is of an earlier request, perhaps of long ago: it is taken anew.
 */
const open = `snapshot=$1 work=$2 own=$3; shift 3
if guid=$("$@" get -H -p -o value guid "$snapshot" 2>/dev/null); then
  token=$("$@" get -H -p -o value receive_resume_token "$work$guid" 2>/dev/null) && { echo "$guid $token"; return; }
  [ -z "$own" ] || "$@" destroy "$snapshot" || return
fi
[ -z "$own" ] || "$@" snapshot "$snapshot" || return
guid=$("$@" get -H -p -o value guid "$snapshot") && echo "$guid"`;

/** Finds the work that has this very snapshot, or says what it would be called. Takes the snapshot when it is for this copy alone. */
export async function openWork(
  { zfs }: ZfsStore,
  call: CallContext,
  { snapshot, isTemporary, work }: { readonly snapshot: string; readonly isTemporary: boolean; readonly work: string },
): Promise<Work> {
  // A guid has up to twenty digits.
  requireShortNames(snapshot, `${work}${'0'.repeat(20)}`);
  const step: Step = { argv: [snapshot, work, isTemporary ? 'own' : '', ...zfs.zfs()], body: open };
  const [result] = await zfs.run(call, 'zfs snapshot', [step]);
  const [guid = '', token] = result.stdout.trim().split(' ');
  if (result.code !== 0 || !/^\d+$/.test(guid)) {
    const error = new StepFailed(zfs.host, `zfs snapshot ${snapshot}`, result);
    // It is being sent: another request for the same copy has just begun.
    throw error.kind === 'busy' ? new CallError('ABORTED', error.message) : error;
  }
  const name = `${work}${guid}`;
  if (token === undefined) return { name, progress: 'nothing' };
  return { name, progress: token === '-' ? 'whole' : { token } };
}
