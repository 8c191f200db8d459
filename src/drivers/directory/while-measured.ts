import { setTimeout as delay } from 'node:timers/promises';
import type { CopyProgress } from './copy-progress.ts';
import type { Call, Directory } from './directory.ts';
import { usedBytes } from './used-bytes.ts';

/** Milliseconds before the first look at what has been copied, and at least between two. */
const leastPauseMs = 30_000;

/** How many times longer than a look the pause after it is: looking reads every entry of the copy. */
const pauseRatio = 30;

/** Looks now and then how much is in `folder` while `work` fills it: cp(1) itself does not tell. */
export async function whileMeasured<T>(
  directory: Directory,
  call: Call,
  folder: string,
  progress: CopyProgress,
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const signal = AbortSignal.any([call.signal, over.signal]);
  const looking = lookRepeatedly(directory, { ...call, signal }, folder, progress).catch(() => {});
  try {
    return await work();
  } finally {
    over.abort();
    await looking;
  }
}

async function lookRepeatedly(directory: Directory, call: Call, folder: string, progress: CopyProgress): Promise<void> {
  for (let pause = leastPauseMs; ; ) {
    await delay(pause, undefined, { signal: call.signal, ref: false });
    const began = performance.now();
    progress.report(await usedBytes(directory, call, folder));
    pause = Math.max(leastPauseMs, pauseRatio * (performance.now() - began));
  }
}
