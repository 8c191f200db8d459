/** Copies of whole volumes: a few at a time, counted, and told of in the log when they take long. */
import type { CallContext } from '../../core/call.ts';
import { throwIfOver } from '../../core/call.ts';
import type { Logger } from '../../core/logger.ts';
import { type CopyProgress, createProgress } from './copy-progress.ts';
import type { SnapshotDriver } from './options.ts';
import type { Party } from './party.ts';
import { createTurns } from './turns.ts';

export interface CopyTitle {
  /** Such as `copy of volume v1`. */
  readonly what: string;
  readonly engine: SnapshotDriver;
}

/** What a copy needs of the call or job it is part of. */
type Copier = Pick<CallContext, 'signal' | 'log' | 'waitingFor'>;

export interface Copies {
  /** Runs `work` when it is its turn. It is given somewhere to tell how far it is, which `onProgress` hears of before, too. */
  run<T>(
    call: Copier,
    title: CopyTitle,
    work: (progress: CopyProgress) => Promise<T>,
    onProgress?: (progress: CopyProgress) => void,
  ): Promise<T>;
}

/** A copy that took at least this many milliseconds is worth a line in the log. */
const longMs = 10_000;

export function createCopies({ connection, meter }: Party, atOnce: number): Copies {
  const turns = createTurns(atOnce);
  return {
    async run(call, { what, engine }, work, onProgress) {
      const kind = { connection, engine };
      let state: 'waiting' | 'running' = 'waiting';
      meter.copiesChanged(kind, state, 1);
      let outcome: 'ok' | 'failed' | 'cancelled' = 'cancelled';
      let leave = () => {};
      try {
        leave = await turnFor(call, turns, atOnce);
        meter.copiesChanged(kind, state, -1);
        state = 'running';
        meter.copiesChanged(kind, state, 1);
        throwIfOver(call.signal);
        const progress = createProgress(call.log, meter, kind, what);
        onProgress?.(progress);
        const began = performance.now();
        const result = await call.waitingFor(what, () => work(progress));
        outcome = 'ok';
        tellOfLong(call.log, { what, engine, copied: progress.text() }, performance.now() - began);
        return result;
      } catch (error) {
        if (!call.signal.aborted) outcome = 'failed';
        throw error;
      } finally {
        leave();
        meter.copiesChanged(kind, state, -1);
        meter.copyEnded(kind, outcome);
      }
    },
  };
}

async function turnFor(call: Copier, turns: ReturnType<typeof createTurns>, atOnce: number): Promise<() => void> {
  const free = turns.take();
  if (free) return free;
  call.log.info('a copy waits for its turn', { running: atOnce, waiting: turns.waiting() + 1 });
  return await call.waitingFor(`its turn, after the ${atOnce} copies that run now`, () => turns.wait(call.signal));
}

function tellOfLong(log: Logger, fields: Readonly<Record<string, unknown>>, milliseconds: number): void {
  if (milliseconds >= longMs) log.info('a copy is complete', { ...fields, seconds: Math.round(milliseconds / 1000) });
}
