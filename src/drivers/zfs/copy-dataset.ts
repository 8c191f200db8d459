/** Full copies by send and receive (zfs-send(8), zfs-receive(8)): resumable, under a name of their own until they are whole. */

import { type Step, type StepResult, senderCode } from '../../backends/shell/steps.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError, oneLine } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import { openWork, removeWorks, type Work, workOf, worksBelow } from './copy-work.ts';
import type { ZfsStore } from './store.ts';
import { asAssignments, type Properties } from './wanted-properties.ts';

export interface DatasetCopy {
  readonly snapshot: string;
  /** The snapshot is for this copy alone: it is taken when it is not there, and goes with the copy's end. */
  readonly isTemporary: boolean;
  /** The copy. Nothing has this name before it is whole and has its properties. */
  readonly name: string;
  readonly properties: Properties;
  /** What it is called while it is not whole, but for what {@link openWork} adds. Default: {@link workOf} its name. */
  readonly work?: string | undefined;
}

/** Milliseconds between two lines of progress in the log. */
const progressMs = 10_000;

/** Makes the copy, or goes on where an earlier call was interrupted. There is no time limit. */
export async function copyDataset(store: ZfsStore, call: CallContext, copy: DatasetCopy): Promise<void> {
  const { zfs } = store;
  const { snapshot, isTemporary, name, properties } = copy;
  const own = copy.work ?? workOf(name);
  const work = await call.waitingFor(`copy of ${snapshot} on ${zfs.host}`, async () => {
    for (;;) {
      const opened = await openWork(store, call, { snapshot, isTemporary, work: own });
      if (opened.progress === 'whole' || (await isSent(store, call, copy, opened))) return opened.name;
    }
  });
  const sent = `${work}@${snapshot.slice(snapshot.indexOf('@') + 1)}`;
  const steps: [Step, ...Step[]] = [
    // While it is a work, its mark or its snapshot tells that it is ours. The snapshot is absent when an earlier call came so far.
    { argv: zfs.zfs('set', ...asAssignments(properties), work) },
    { argv: zfs.zfs('destroy', sent), goOn: 'any' },
    { argv: zfs.zfs('rename', work, name) },
    ...(isTemporary ? [{ argv: zfs.zfs('destroy', '-d', snapshot), goOn: 'any' as const }] : []),
    worksBelow(store, own.slice(0, own.lastIndexOf('/'))),
  ];
  const results = await zfs.run(call, 'zfs rename', steps);
  const [set, , renamed] = results;
  if (renamed?.code === 0) {
    // An earlier request of this name may have been for another source, and nobody asks for that again.
    const others = results.at(-1)?.stdout.split('\n') ?? [];
    return await removeWorks(store, call, others, own);
  }
  const failed = renamed ?? set;
  // Another controller may have been faster: whether the copy is there is what counts, and of its work one is enough.
  const [there] = await zfs.run(call, 'zfs get', [
    { argv: zfs.zfs('get', '-H', 'type', name) },
    { argv: zfs.zfs('destroy', '-r', work), goOn: 'any' },
  ]);
  if (there.code !== 0) throw new StepFailed(zfs.host, `zfs rename ${work} ${name}`, failed);
}

/** False when nothing is left of the work, because it could not be gone on with. */
async function isSent(store: ZfsStore, call: CallContext, copy: DatasetCopy, work: Work): Promise<boolean> {
  const { zfs } = store;
  const { name, progress: from } = work;
  const resumed = typeof from === 'object';
  const sending = resumed ? ['-t', from.token] : ['-L', copy.snapshot];
  const transfer: Step = {
    argv: zfs.zfs('send', '-v', '-P', ...sending),
    into: zfs.zfs('receive', '-s', '-u', name),
  };
  const [result] = await zfs.run(call, 'zfs send', [transfer], {
    timeoutMs: undefined,
    onStderr: progress(call, copy),
  });
  if (result.code === 0 && senderCode(result) === 0) return true;
  if (!resumed || !cannotResume.test(result.stderr)) throw transferFailed(store, copy, result);
  call.log.warn('an interrupted copy cannot be resumed and begins anew', { copy: copy.name });
  const [aborted] = await zfs.run(call, 'zfs receive', [{ argv: zfs.zfs('receive', '-A', name) }]);
  if (aborted.code !== 0) throw new StepFailed(zfs.host, `zfs receive -A ${name}`, aborted);
  return false;
}

/** The snapshot is gone, or is another one of the same name, or the token cannot be read. The token itself is printed by `zfs send -v`, too. */
const cannotResume = /^cannot (?:resume send|receive .* incremental source)/m;

/** Progress, the content of the token, and what to do with a token. */
const noComplaint = /^(?:full|incremental|resume|nvlist|size|\s|\d\d:|Partially received|A resuming stream)/;

function transferFailed({ zfs }: ZfsStore, copy: DatasetCopy, result: StepResult): CallError {
  const code = senderCode(result);
  const isReceiver = Number.isNaN(code) || code === 0 || code === 141;
  const [who, ended] = isReceiver ? ['receive', result.code] : ['send', code];
  const said = oneLine(
    result.stderr
      .split('\n')
      .filter((line) => !noComplaint.test(line))
      .join(' '),
  );
  const stderr = said || (ended > 128 ? `ended by signal ${ended - 128}` : `exit ${ended}`);
  const error = new StepFailed(zfs.host, `zfs ${who} of ${copy.snapshot}`, { ...result, stderr });
  // Whatever ended it, another attempt has less to do.
  const status = error.kind === 'other' ? 'UNAVAILABLE' : error.code;
  return new CallError(status, `${error.message}; it goes on from there when it is asked for again`);
}

/** `zfs send -v -P` writes a line a second: time, bytes, snapshot. */
function progress(call: CallContext, { snapshot, name }: DatasetCopy): (text: string) => void {
  let last = Date.now();
  return (text) => {
    const sent = /^\d\d:\d\d:\d\d\s+(\d+)\s/m.exec(text)?.[1];
    if (sent === undefined || Date.now() - last < progressMs) return;
    last = Date.now();
    call.log.info('copying', { from: snapshot, to: name, sent: formatSize(Number(sent)) });
  };
}
