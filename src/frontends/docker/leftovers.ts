/** Mounts that nobody wants any more: of callers that left, of unmounting that failed, of a process that was killed in the middle. */
import type { CallContext } from '../../core/call.ts';
import { detachedContext } from '../../core/call.ts';
import { asCallError } from '../../core/errors.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { detach } from './attach.ts';
import { type Leftovers, lockOfName, lockOfVolume, type MountNote, type VolumeDriverParts } from './workshop.ts';

/** Milliseconds between attempts; the last one repeats. */
const pauses = [1000, 5000, 15_000, 60_000, 300_000];

export function leftoversOf(parts: VolumeDriverParts, log: CallContext['log']): Leftovers {
  const { driver, mounts, secrets } = parts;
  const timers = new Map<string, NodeJS.Timeout>();
  const stopped = new AbortController();

  async function takeAway(call: CallContext, record: MountNote): Promise<void> {
    const { name, volumeId } = record;
    const places = await mounts.placesOf(name);
    // What is left must go even if its secrets are gone.
    const known = await secrets(record.secretFiles).catch(() => ({}));
    await withLock(lockOfVolume(volumeId), call.signal, async () => {
      const others = (await mounts.ofVolume(volumeId)).filter((one) => one.name !== name && one.ids.length > 0);
      // Mounted under another of its names, it still needs its storage.
      const nodeId = others.length > 0 ? undefined : record.nodeId;
      await detach({ ...call, secrets: known }, driver, volumeId, places, nodeId);
      await mounts.remove(name);
    });
  }

  /** True when there is nothing left to do. */
  async function attempt(name: string): Promise<boolean> {
    const call = detachedContext(log, stopped.signal);
    try {
      return await withLock(lockOfName(name), stopped.signal, async () => {
        const record = await mounts.read(name);
        if (!record) return true;
        if (record.ids.length > 0) {
          log.verbose('a volume that was to be unmounted is wanted again', { volume: name });
          return true;
        }
        await takeAway(call, record);
        log.info('a volume that nobody uses any more was unmounted', { volume: name });
        return true;
      });
    } catch (error) {
      if (stopped.signal.aborted) return true;
      log.warn('a volume that nobody uses any more cannot be unmounted yet', {
        volume: name,
        error: asCallError(error).message,
      });
      return false;
    }
  }

  function schedule(name: string, tries: number): void {
    if (stopped.signal.aborted || timers.has(name)) return;
    const pause = pauses[Math.min(tries, pauses.length - 1)];
    const timer = setTimeout(async () => {
      const done = await attempt(name);
      timers.delete(name);
      if (!done) schedule(name, tries + 1);
    }, pause).unref();
    timers.set(name, timer);
  }

  return {
    takeAway,
    takeUpLater: (name) => schedule(name, 0),
    async takeUpAll() {
      const skip = (error: unknown) => log.warn('a record of a mount cannot be read', { error });
      for (const { name, ids } of await mounts.all(skip)) {
        if (ids.length === 0 && !(await attempt(name))) schedule(name, 1);
      }
    },
    stop() {
      stopped.abort();
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
