/**
 * What is left of deleted volumes for a while. The NFS server of Linux holds what clients used after it was unshared: for seconds, or for as long as
 * other exports come and go faster than one a second. Such a dataset gets a name that no volume has, and is destroyed when it is free.
 */
import { randomBytes } from 'node:crypto';
import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, valueIn } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { ZfsStore } from './store.ts';
import { idOf } from './volume-answer.ts';

export const trashPrefix = 'trash:';

/** Whose trash is known to be empty. */
const clean = new WeakSet<ZfsStore>();

/** Whether volumes of this store may be held by a server after they were unshared. */
export function canBeHeld({ share, kind }: ZfsStore): boolean {
  return kind === 'filesystem' && Object.keys(share.properties).length > 0;
}

/** Takes the name away from a volume that is busy. Processes that use it keep it until they let go; nothing leads to it any more. */
export async function throwAway(store: ZfsStore, call: CallContext, volume: Dataset): Promise<void> {
  const { zfs, options, share } = store;
  const path = valueIn(volume, 'mountpoint');
  const trash = `${options.datasetParentName}/${trashPrefix}${idOf(volume)}:${randomBytes(4).toString('hex')}`;
  const off = Object.keys(share.properties).map((property) => `${property}=off`);
  const detach: Step[] = path?.startsWith('/') ? [{ argv: zfs.program('umount', '-l', '--', path), goOn: 'any' }] : [];
  const rename: Step = { argv: zfs.zfs('rename', '-u', volume.name, trash) };
  const results = await zfs.run(call, 'zfs rename', [
    ...detach,
    rename,
    { argv: zfs.zfs('set', 'canmount=noauto', ...off, trash) },
  ] as unknown as [Step, ...Step[]]);
  const renamed = results[detach.length] ?? results[0];
  if (renamed.code !== 0) throw new StepFailed(zfs.host, `zfs rename ${volume.name} ${trash}`, renamed);
  clean.delete(store);
  call.log.info('a deleted volume is held by its server, and is destroyed later', { dataset: trash });
}

/** Destroys what is free by now. Snapshots go with their datasets; nothing else of them is left. */
export async function emptyTrash(store: ZfsStore, call: CallContext): Promise<void> {
  if (!canBeHeld(store) || clean.has(store)) return;
  const { zfs, options, kind } = store;
  const { datasetParentName: parent } = options;
  const argv = zfs.zfs('list', '-H', '-o', 'name', '-s', 'name', '-d', '1', '-t', kind, parent);
  const [list] = await zfs.run(call, 'zfs list', [{ argv }]);
  const trash = list.stdout.split('\n').filter((name) => name.startsWith(`${parent}/${trashPrefix}`));
  const [first, ...others] = trash.map((name): Step => ({ argv: zfs.zfs('destroy', '-r', name), goOn: 'any' }));
  if (first) await zfs.run(call, 'zfs destroy', [first, ...others]);
  else if (list.code === 0) clean.add(store);
}
