/**
 * What is left of deleted volumes for a while. The NFS server of Linux holds what clients used after it was unshared: for seconds, or for as long as
 * other exports come and go faster than one a second. Such a dataset gets a name that no volume has, and is destroyed when it is free.
 */
import { randomBytes } from 'node:crypto';
import type { Step, Steps } from '../../backends/shell/steps.ts';
import type { Dataset } from '../../backends/zfs/dataset.ts';
import { isMissing } from '../../backends/zfs/failure.ts';
import { type CallContext, detachedContext } from '../../core/call.ts';
import { asCallError, oneLine } from '../../core/errors.ts';
import type { ZfsStore } from './store.ts';
import { unmountOwn } from './unmount-own.ts';
import { userProperties } from './user-properties.ts';
import { idOf, isManaged } from './volume-answer.ts';

const prefix = 'trash:';

/** Whether a deleted volume was given this name here: one by somebody else has not got the mark of a volume. */
export function isTrash(dataset: Dataset): boolean {
  return isTrashName(dataset.name) && isManaged(dataset);
}

export const isTrashName = (name: string): boolean => /\/trash:[^:/]+:[0-9a-f]{8}$/.test(name);

export interface Trash {
  /**
   * Takes the name away from a volume that is busy. Processes that use it keep it until they let go; nothing leads to it any more. False when it still has
   * its name: ZFS does not rename what is busy before OpenZFS 2.0.
   */
  throwAway(call: CallContext, volume: Dataset): Promise<boolean>;
  /** Called when volumes come and go. The first time, what an earlier process left is looked for. */
  lookOnce(): void;
  /** Destroys nothing more. What is left is found by the next process. */
  close(): Promise<void>;
}

/** Milliseconds before it is tried to destroy what is left: doubled with each time that something stays. */
const firstPause = 5000;
const longestPause = 300_000;

/** Whose turn it is on each host: one after the other. */
const turns = new Map<string, Promise<unknown>>();

export function createTrash(store: ZfsStore): Trash {
  const { log, zfs } = store;
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<unknown> | undefined;
  let isKnown = !canBeHeld(store);

  function tryAfter(pause: number): void {
    if (over.signal.aborted) return;
    clearTimeout(timer);
    timer = setTimeout(() => void attempt(pause), pause);
    timer.unref();
  }

  async function attempt(pause: number): Promise<void> {
    const turn = (turns.get(zfs.host) ?? Promise.resolve()).then(() => empty(store, detachedContext(log, over.signal)));
    const ended = turn.catch(() => {});
    turns.set(zfs.host, ended);
    running = ended;
    try {
      if (await turn) return;
    } catch (error) {
      if (!over.signal.aborted) log.debug('the trash was not looked through', { error: asCallError(error).message });
    } finally {
      if (turns.get(zfs.host) === ended) turns.delete(zfs.host);
    }
    tryAfter(Math.min(Math.max(pause, firstPause) * 2, longestPause));
  }

  return {
    async throwAway(call, volume) {
      if (!(await isRenamed(store, call, volume))) return false;
      tryAfter(firstPause);
      return true;
    },
    lookOnce() {
      if (isKnown) return;
      isKnown = true;
      tryAfter(0);
    },
    async close() {
      over.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

/** Whether volumes of this store may be held by a server after they were unshared. */
export function canBeHeld({ share, kind }: ZfsStore): boolean {
  return kind === 'filesystem' && Object.keys(share.properties).length > 0;
}

async function isRenamed(store: ZfsStore, call: CallContext, volume: Dataset): Promise<boolean> {
  const { zfs, options, share } = store;
  const trash = `${options.datasetParentName}/${prefix}${idOf(volume)}:${randomBytes(4).toString('hex')}`;
  const off = Object.keys(share.properties).map((property) => `${property}=off`);
  const detach = unmountOwn(store, volume, '-l').map((step): Step => ({ ...step, goOn: 'any' }));
  const results = await zfs.run(call, 'zfs rename', [
    ...detach,
    { argv: zfs.zfs('rename', '-u', volume.name, trash) },
    { argv: zfs.zfs('set', 'canmount=noauto', ...off, trash) },
  ] as unknown as Steps);
  const renamed = results[detach.length] ?? results[0];
  if (renamed.code !== 0) {
    call.log.warn('a volume cannot be renamed while it is busy', {
      dataset: volume.name,
      said: oneLine(renamed.stderr),
    });
    return false;
  }
  call.log.info('a deleted volume is held by its server, and is destroyed later', { dataset: trash });
  return true;
}

/** Destroys what is free by now: true when nothing is left. */
async function empty({ zfs, options, kind }: ZfsStore, call: CallContext): Promise<boolean> {
  const { datasetParentName: parent } = options;
  const { managed } = userProperties;
  const marked = zfs.zfs('get', '-H', '-o', 'name', '-s', 'local,received', '-t', kind, '-d', '1', managed, parent);
  const [list] = await zfs.run(call, 'zfs get', [{ argv: marked }]);
  const trash = list.stdout.split('\n').filter(isTrashName);
  // With its snapshots, but not with what somebody made below it.
  const [first, ...others] = trash.flatMap((name): readonly Step[] => [
    { argv: zfs.zfs('destroy', `${name}@%`), goOn: 'any' },
    { argv: zfs.zfs('destroy', name), goOn: 'any' },
  ]);
  if (!first) return list.code === 0 || isMissing(list);
  const results = await zfs.run(call, 'zfs destroy', [first, ...others]);
  return results.every((result, index) => index % 2 === 0 || result.code === 0 || isMissing(result));
}
