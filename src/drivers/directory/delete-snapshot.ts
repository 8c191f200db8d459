/** DeleteSnapshot: of a whole one, or of one that is still copied, which ends the copy. */
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Directory } from './directory.ts';
import type { Engines } from './snapshot-engines/engines.ts';
import { jobOf, takeFailure } from './snapshot-jobs.ts';
import { locateSnapshot } from './snapshot-place.ts';
import { isElsewhere, listPromises, readPromise, removePromise } from './snapshot-promise.ts';

export async function deleteSnapshot(
  directory: Directory,
  engines: Engines,
  call: CallContext,
  id: string,
): Promise<void> {
  const place = await locateSnapshot(directory, engines, call, id);
  if (!place) return;
  const { engine } = place;
  const key = place.key ?? (await keyByInner(directory, engine.name, place.inner));
  if (key === undefined) {
    if (place.inner !== undefined) await engine.delete(call, place.inner);
    return;
  }
  await endCopy(directory, call, key);
  // It may have become whole while it was ended.
  const promise = await readPromise(directory, key);
  const inner = promise?.inner ?? place.inner;
  if (inner !== undefined) await engine.delete(call, inner);
  else if (promise) await engine.discard(call, { spec: promise, key });
  await removePromise(directory, key);
}

async function endCopy(directory: Directory, call: CallContext, key: string): Promise<void> {
  const promise = await readPromise(directory, key);
  if (promise && (await isElsewhere(directory, key, promise))) {
    throw new CallError('ABORTED', `snapshot ${promise.name} is being taken by another process; try again`);
  }
  const why = new CallError('ABORTED', 'the snapshot was deleted while it was taken');
  await call.waitingFor('the end of its copy', async () => jobOf(directory, key)?.cancel(why));
  takeFailure(directory, key);
}

/** The key that a snapshot was promised under which is now asked for by the repository's id. */
async function keyByInner(
  directory: Directory,
  engine: string,
  inner: string | undefined,
): Promise<string | undefined> {
  for (const [key, promise] of await listPromises(directory)) {
    if (promise.engine === engine && promise.inner !== undefined && promise.inner === inner) return key;
  }
  return undefined;
}
