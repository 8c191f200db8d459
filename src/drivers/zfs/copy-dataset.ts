/** Full copies by send and receive (zfs-send(8), zfs-receive(8)): resumable, under a name of their own until they are whole. */

import { type Step, type StepResult, senderCode } from '../../backends/shell/steps.ts';
import { valueIn } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError, oneLine } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import type { ZfsStore } from './store.ts';
import { asAssignments, type Properties } from './wanted-properties.ts';

export interface DatasetCopy {
  /** What makes the snapshot, if it has to be made. */
  readonly take: readonly Step[];
  readonly snapshot: string;
  /** The snapshot is for this copy alone, and goes with its end. */
  readonly isTemporary: boolean;
  /** The copy. Nothing has this name before it is whole and has its properties. */
  readonly name: string;
  readonly properties: Properties;
  /** Where it is while it is not whole. Its last part has a colon, which no volume's id has. Default: beside the copy. */
  readonly workName?: string | undefined;
}

/** Milliseconds between two lines of progress in the log. */
const progressMs = 10_000;

/** Makes the copy, or goes on where an earlier call was interrupted. There is no time limit. */
export async function copyDataset(store: ZfsStore, call: CallContext, copy: DatasetCopy): Promise<void> {
  const { zfs } = store;
  const work = copy.workName ?? workNameOf(copy.name);
  await call.waitingFor(`copy of ${copy.snapshot} on ${zfs.host}`, async () => {
    const state = await look(store, call, work);
    if (state !== 'whole') await send(store, call, copy, work, state);
  });
  const { snapshot, isTemporary, name, properties } = copy;
  const sent = `${work}@${snapshot.slice(snapshot.indexOf('@') + 1)}`;
  const steps: [Step, ...Step[]] = [
    // Absent when an earlier call came so far.
    { argv: zfs.zfs('destroy', sent), goOn: 'any' },
    { argv: zfs.zfs('set', ...asAssignments(properties), work) },
    { argv: zfs.zfs('rename', work, name) },
    ...(isTemporary ? [{ argv: zfs.zfs('destroy', '-d', snapshot), goOn: 'any' as const }] : []),
  ];
  const results = await zfs.run(call, 'zfs rename', steps);
  const [, set, renamed] = results;
  if (renamed?.code === 0) return;
  const failed = renamed ?? set ?? results[0];
  // Another controller may have been faster: whether the copy is there is what counts, and of its work one is enough.
  const [there] = await zfs.run(call, 'zfs get', [
    { argv: zfs.zfs('get', '-H', 'type', name) },
    { argv: zfs.zfs('destroy', '-r', work), goOn: 'any' },
  ]);
  if (there.code !== 0) throw new StepFailed(zfs.host, `zfs rename ${work} ${name}`, failed);
}

/** Beside the finished one; ids of volumes have no colon. */
export function workNameOf(name: string): string {
  const slash = name.lastIndexOf('/');
  return `${name.slice(0, slash)}/copy:${name.slice(slash + 1)}`;
}

/** A token to go on with, or that it is whole, or that nothing is there. */
type Progress = 'whole' | 'nothing' | { readonly token: string };

async function look({ zfs }: ZfsStore, call: CallContext, work: string): Promise<Progress> {
  const dataset = await zfs.readOne(call, work, ['receive_resume_token']);
  if (!dataset) return 'nothing';
  const token = valueIn(dataset, 'receive_resume_token');
  return token ? { token } : 'whole';
}

async function send(
  store: ZfsStore,
  call: CallContext,
  copy: DatasetCopy,
  work: string,
  from: Progress,
): Promise<void> {
  const { zfs } = store;
  const resumed = typeof from === 'object';
  const sending = resumed ? ['-t', from.token] : ['-L', '-e', copy.snapshot];
  const transfer: Step = {
    argv: zfs.zfs('send', '-v', '-P', ...sending),
    into: zfs.zfs('receive', '-s', '-u', work),
  };
  const steps = [...(resumed ? [] : copy.take), transfer] as unknown as [Step, ...Step[]];
  const results = await zfs.run(call, 'zfs send', steps, { timeoutMs: undefined, onStderr: progress(call, copy) });
  const result = results.at(-1) ?? results[0];
  if (results.length === steps.length && result.code === 0 && senderCode(result) === 0) return;
  if (resumed && cannotResume.test(result.stderr)) {
    call.log.warn('an interrupted copy cannot be resumed and begins anew', { copy: copy.name });
    await zfs.run(call, 'zfs receive', [{ argv: zfs.zfs('receive', '-A', work) }]);
    return await send(store, call, copy, work, 'nothing');
  }
  throw transferFailed(store, copy, result);
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
